//! The rules for names: the rules of Kubernetes, because the API server checks names, and of Rust, because
//! names become modules and types.

use crate::{Error, Result};

/// The longest label of a DNS name.
const LABEL: usize = 63;

/// Keywords of Rust, including reserved keywords.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

/// Types that a scaffolded file names without a path; a kind with the same name would hide the type.
const TAKEN: &[&str] = &[
    "Action",
    "Box",
    "Context",
    "Controller",
    "Default",
    "Err",
    "Manager",
    "None",
    "ObjectKey",
    "Ok",
    "Option",
    "Permission",
    "Result",
    "Self",
    "Setup",
    "Some",
    "String",
    "Vec",
];

/// Names that a package cannot have: cargo refuses the name, or a dependency of every project has the name.
const PACKAGES: &[&str] = &[
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "incremental",
    "k8s-openapi",
    "kube",
    "proc-macro",
    "schemars",
    "serde",
    "serde-json",
    "std",
    "test",
    "tokio",
    "tracing",
    "windlass",
    "windlass-client",
    "windlass-derive",
    "windlass-test",
];

fn wrong<T>(what: &'static str, name: &str, problem: impl Into<String>) -> Result<T> {
    Err(Error::Name { what, name: name.to_owned(), problem: problem.into() })
}

/// Returns whether a text is a DNS-1123 label: at most 63 of `a-z`, `0-9` and `-`, without `-` at either end.
pub fn is_label(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty()
        && text.len() <= LABEL
        && text.bytes().all(inner)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

/// Checks the name of a project: a DNS-1123 label that cargo accepts as a package name.
pub fn check_project(name: &str) -> Result<()> {
    const WAY_OUT: &str = "choose another one with --project-name";
    if !is_label(name) {
        let rule = "is not a DNS-1123 label (a-z, 0-9 and -, at most 63)";
        return wrong("project name", name, format!("{rule}; {WAY_OUT}"));
    }
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        return wrong("project name", name, format!("starts with a digit, which cargo refuses; {WAY_OUT}"));
    }
    if KEYWORDS.contains(&name) || PACKAGES.contains(&name) {
        return wrong("project name", name, format!("is reserved in Rust; {WAY_OUT}"));
    }
    Ok(())
}

/// Checks the domain of a project: a DNS-1123 subdomain.
pub fn check_domain(name: &str) -> Result<()> {
    if is_subdomain(name) {
        return Ok(());
    }
    wrong(
        "domain",
        name,
        "is not a DNS-1123 subdomain, such as example.com; choose another one with --domain",
    )
}

/// Checks a group in the user's form, without the domain.
pub fn check_group(name: &str) -> Result<()> {
    if name.is_empty() {
        return Err(Error::Refused(
            "the group is empty; name one with --group, such as --group apps".to_owned(),
        ));
    }
    if !is_subdomain(name) {
        return wrong("group", name, "is not a DNS-1123 subdomain (a-z, 0-9, - and .), such as batch");
    }
    check_module("group", name, &module(name))?;
    match module(name).as_str() {
        "client" | "generated" => {
            wrong("group", name, "is the name of a folder for generated code; choose another one")
        }
        _ => Ok(()),
    }
}

/// Checks a version: `v1`, `v1alpha1`, `v2beta3`.
pub fn check_version(name: &str) -> Result<()> {
    let number =
        |text: &str| !text.is_empty() && !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    let parts = name.strip_prefix('v').map(|rest| match rest.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    });
    let valid = parts.is_some_and(|(major, stage)| {
        let minor = stage.strip_prefix("alpha").or_else(|| stage.strip_prefix("beta"));
        number(major) && (stage.is_empty() || minor.is_some_and(number))
    });
    if valid { Ok(()) } else { wrong("version", name, "is not a version such as v1, v1beta1 or v1alpha1") }
}

/// Checks a kind: PascalCase, and neither a keyword nor a name that the scaffolded code needs.
pub fn check_kind(name: &str) -> Result<()> {
    let pascal = name.starts_with(|first: char| first.is_ascii_uppercase())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && name.len() <= LABEL;
    if !pascal {
        let rule = "is not PascalCase (an upper-case letter, then letters and digits)";
        let hint = pascal_case(name).map(|better| format!("; try {better}")).unwrap_or_default();
        return wrong("kind", name, format!("{rule}{hint}"));
    }
    if TAKEN.contains(&name) {
        return wrong(
            "kind",
            name,
            "is the name of a Rust type that every controller uses; choose another one",
        );
    }
    check_module("kind", name, &module(name))
}

/// Checks the plural of a kind. The plural is in the URL of objects.
pub fn check_plural(name: &str) -> Result<()> {
    if is_label(name) {
        return Ok(());
    }
    wrong("plural", name, "is not a DNS-1123 label (a-z, 0-9 and -); choose another one with --plural")
}

/// Checks the name of a controller: a DNS-1123 label that is a module, too.
pub fn check_controller(name: &str) -> Result<()> {
    if !is_label(name) {
        return wrong("controller name", name, "is not a DNS-1123 label (a-z, 0-9 and -, at most 63)");
    }
    check_module("controller name", name, &module(name))
}

/// Checks the path of a webhook.
pub fn check_path(path: &str) -> Result<()> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_' | b'.');
    let segments = path.strip_prefix('/').map(|rest| rest.split('/'));
    let is_path = segments.is_some_and(|mut parts| parts.all(|part| !part.is_empty() && part != ".."));
    if is_path && path.bytes().all(is_plain) {
        return Ok(());
    }
    wrong("webhook path", path, "is not a path such as /mutate-my-kind (letters, digits, -, _, . and /)")
}

fn check_module(what: &'static str, name: &str, module: &str) -> Result<()> {
    if KEYWORDS.contains(&module) {
        return wrong(
            what,
            name,
            format!("becomes the module {module:?}, a keyword of Rust; choose another one"),
        );
    }
    if module.starts_with(|first: char| first.is_ascii_digit()) {
        return wrong(
            what,
            name,
            "starts with a digit, which the name of a Rust module must not; choose another one",
        );
    }
    Ok(())
}

fn pascal_case(name: &str) -> Option<String> {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let made: String = words
        .map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_ascii_uppercase() + rest
        })
        .collect();
    made.starts_with(|first: char| first.is_ascii_uppercase()).then_some(made)
}

/// Returns the name of a module or variable: `CustomPod` → `custom_pod`, `IPPool` → `ip_pool`, `my-group.io` → `my_group_io`.
pub fn module(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut made = String::with_capacity(name.len() + 4);
    for (at, &c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| chars[at]);
        let after = chars.get(at + 1);
        let starts_word = before.is_some_and(|before| {
            !before.is_ascii_uppercase() && before.is_ascii_alphanumeric()
                || before.is_ascii_uppercase() && after.is_some_and(char::is_ascii_lowercase)
        });
        if c.is_ascii_uppercase() && starts_word {
            made.push('_');
        }
        made.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    }
    made
}

/// Returns the plural of a kind in lower case, like `#[derive(CustomResource)]`: `bars`, `proxies`, `buses`.
pub fn plural(kind: &str) -> String {
    let word = kind.to_ascii_lowercase();
    if ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end)) {
        return format!("{word}es");
    }
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) && !stem.is_empty() => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_snake_case() {
        let pairs =
            [("CustomPod", "custom_pod"), ("IPPool", "ip_pool"), ("HTTPRoute", "http_route"), ("Bar", "bar")];
        for (name, made) in
            pairs.into_iter().chain([("my-group.io", "my_group_io"), ("S3Bucket", "s3_bucket")])
        {
            assert_eq!(module(name), made);
        }
    }

    #[test]
    fn plurals_are_those_of_kube() {
        let pairs = [
            ("Bar", "bars"),
            ("Proxy", "proxies"),
            ("Bus", "buses"),
            ("Gateway", "gateways"),
            ("Box", "boxes"),
        ];
        for (kind, made) in pairs {
            assert_eq!(plural(kind), made);
        }
    }

    #[test]
    fn versions_have_a_number_and_perhaps_a_stage() {
        for right in ["v1", "v12", "v1alpha1", "v2beta3"] {
            assert!(check_version(right).is_ok(), "{right}");
        }
        for wrong in ["", "1", "v", "v0", "v1alpha", "v1gamma1", "V1", "v1beta0", "v1.2"] {
            assert!(check_version(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn errors_say_what_to_do() {
        let said = |result: Result<()>| result.expect_err("an error").to_string();
        assert_eq!(
            said(check_kind("custom-pod")),
            "kind \"custom-pod\" is not PascalCase (an upper-case letter, then letters and digits); try CustomPod"
        );
        assert_eq!(
            said(check_kind("Type")),
            "kind \"Type\" becomes the module \"type\", a keyword of Rust; choose another one"
        );
        assert_eq!(said(check_group("")), "the group is empty; name one with --group, such as --group apps");
        assert!(said(check_kind("Option")).contains("is the name of a Rust type"));
        assert!(said(check_project("My Operator")).contains("--project-name"));
        assert!(said(check_project("28-operator")).contains("starts with a digit"));
        assert!(said(check_project("test")).contains("reserved"));
        assert!(said(check_domain("Example.com")).contains("--domain"));
        assert!(said(check_group("Foo")).contains("DNS-1123"));
        assert!(
            said(check_controller("Backup_1")).contains("controller name \"Backup_1\" is not a DNS-1123")
        );
        assert!(check_controller("bar-backup").is_ok() && check_controller("loop").is_err());
        assert!(check_path("/mutate-v2/bar_1.x").is_ok());
        for wrong in ["", "/", "mutate", "/a//b", "/a/../b", "/a\"b", "/a?b"] {
            assert!(said(check_path(wrong)).contains("webhook path"), "{wrong}");
        }
    }
}
