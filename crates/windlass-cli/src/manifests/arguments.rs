//! The words of `windlass manifests`. Words that controller-gen has mean the same.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A part of the manifests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// `config/crd`.
    Crd,
    /// `config/rbac`.
    Rbac,
    /// `config/webhook`.
    Webhook,
    /// Everything below `config/`.
    All,
    /// `dist/install.yaml`.
    Install,
}

impl Part {
    /// Returns the folder of the generated files. The folder of `all` contains the folders of all other
    /// parts.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Crd => "config/crd",
            Self::Rbac => "config/rbac",
            Self::Webhook => "config/webhook",
            Self::All => "config",
            Self::Install => "dist",
        }
    }

    /// Returns controller-gen's default folder of the files.
    fn usual_folder(self) -> &'static str {
        match self {
            Self::Crd => "config/crd/bases",
            other => other.folder(),
        }
    }

    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "crd" => Self::Crd,
            "rbac" => Self::Rbac,
            "webhook" => Self::Webhook,
            "all" => Self::All,
            "install" => Self::Install,
            _ => return None,
        })
    }
}

/// Where a part is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// To the project's files below `config/`, with kustomizations.
    Project,
    /// To a folder, without kustomizations.
    Folder(PathBuf),
    /// To stdout.
    Stdout,
    /// Nowhere.
    Nowhere,
}

/// The request of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) parts: BTreeMap<Part, Target>,
    pub(crate) role_name: Option<String>,
    pub(crate) max_description: Option<usize>,
    /// Lines for the person about words that have no effect.
    pub(crate) notes: Vec<String>,
}

/// Reads the words. Without a part, all are asked for.
pub(crate) fn parse(words: &[String]) -> Result<Request, String> {
    let mut request = Request::default();
    let mut parts = BTreeSet::new();
    let mut targets: BTreeMap<Option<Part>, Target> = BTreeMap::new();
    for word in words {
        if let Some(rule) = word.strip_prefix("output:") {
            let (part, target) = output_rule(word, rule)?;
            targets.insert(part, target);
        } else if word.starts_with("paths=") {
            // The operator was compiled with the types: no path of types is needed.
        } else {
            let (name, options) = word.split_once(':').unwrap_or((word, ""));
            match Part::parse(name) {
                Some(part) => {
                    parts.insert(part);
                    for option in split_options(options) {
                        set_option(part, &option, word, &mut request)?;
                    }
                }
                None => request.notes.push(foreign_generator(name, word)?),
            }
        }
    }
    // A line with only generators of other tools, such as `object`, requests no files.
    if parts.is_empty() && request.notes.is_empty() {
        parts.insert(Part::All);
    }
    let target = |part: Part| {
        let of_part = targets.get(&Some(part)).or_else(|| targets.get(&None));
        of_part.cloned().unwrap_or(Target::Project)
    };
    request.parts = parts.into_iter().map(|part| (part, usual(part, target(part)))).collect();
    Ok(request)
}

/// Replaces the default folder by the folder of the project.
fn usual(part: Part, target: Target) -> Target {
    match target {
        Target::Folder(folder) if folder.components().eq(PathBuf::from(part.usual_folder()).components()) => {
            Target::Project
        }
        other => other,
    }
}

/// Splits `a=1,b={x,y},c="d,e"` at the commas between options.
fn split_options(text: &str) -> Vec<String> {
    let (mut options, mut depth, mut quoted) = (vec![String::new()], 0_usize, false);
    for char in text.chars() {
        match char {
            '"' => quoted = !quoted,
            '{' if !quoted => depth += 1,
            '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                options.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = options.last_mut() {
            last.push(char);
        }
    }
    options.retain(|option| !option.is_empty());
    options
}

fn set_option(part: Part, option: &str, word: &str, request: &mut Request) -> Result<(), String> {
    let (key, value) = option.split_once('=').unwrap_or((option, ""));
    let value = value.trim_matches('"');
    match (part, key) {
        (Part::Rbac, "roleName") if !value.is_empty() => request.role_name = Some(value.to_owned()),
        (Part::Crd, "maxDescLen") => {
            let length =
                value.parse().map_err(|_| format!("{word}: maxDescLen is a number of bytes, such as 0"))?;
            request.max_description = Some(length);
        }
        (Part::Crd, "crdVersions") if value.trim_matches(['{', '}']) == "v1" => {}
        (Part::Crd, "crdVersions") => return Err(format!("{word}: there is only crdVersions=v1")),
        (Part::Crd, "generateEmbeddedObjectMeta" | "allowDangerousTypes" | "ignoreUnexportedFields") => {
            request.notes.push(format!("{word}: {key} has no effect: the schema is that of the Rust type"));
        }
        (_, "headerFile" | "year" | "fileName") => {
            request
                .notes
                .push(format!("{word}: {key} has no effect: generated files begin with a line that says so"));
        }
        _ => {
            return Err(format!(
                "{word}: no option {key:?}; there are crd:maxDescLen=N and rbac:roleName=NAME"
            ));
        }
    }
    Ok(())
}

/// Returns a note about a generator of controller-gen that has no counterpart here.
fn foreign_generator(name: &str, word: &str) -> Result<String, String> {
    match name {
        "object" => Ok(format!("{word}: nothing to generate: `#[derive(Clone)]` is what deepcopy is in Go")),
        "applyconfiguration" => Ok(format!(
            "{word}: nothing to generate here: `#[derive(ApplyConfiguration)]` makes them when the crate is compiled"
        )),
        "schemapatch" => Err(format!("{word}: schemas come from Rust types; there is nothing to patch")),
        _ => Err(format!(
            "{word:?} is no part of the manifests: there are crd, rbac, webhook, all and install, and output:… as controller-gen has it"
        )),
    }
}

fn output_rule(word: &str, rule: &str) -> Result<(Option<Part>, Target), String> {
    let (part, rule) = match rule.split_once(':') {
        Some((name, rest)) if name != "artifacts" => {
            let part =
                Part::parse(name).ok_or_else(|| format!("{word}: {name:?} is no part of the manifests"))?;
            (Some(part), rest)
        }
        _ => (None, rule),
    };
    let folder = |path: &str| Ok((part, Target::Folder(PathBuf::from(path))));
    match rule {
        "stdout" => Ok((part, Target::Stdout)),
        "none" => Ok((part, Target::Nowhere)),
        _ => {
            if let Some(path) = rule.strip_prefix("dir=").filter(|path| !path.is_empty()) {
                return folder(path);
            }
            let options = rule.strip_prefix("artifacts:").map(split_options).unwrap_or_default();
            let config = options.iter().find_map(|option| option.strip_prefix("config="));
            match config.filter(|path| !path.is_empty()) {
                Some(path) => folder(path),
                None => Err(format!(
                    "{word}: expected output:[PART:]dir=DIR, output:[PART:]artifacts:config=DIR, output:[PART:]stdout or output:[PART:]none"
                )),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(line: &str) -> Result<Request, String> {
        parse(&line.split_whitespace().map(|word| word.replace('"', "")).collect::<Vec<_>>())
    }

    fn parts(line: &str) -> Vec<(Part, Target)> {
        request(line).expect("a request").parts.into_iter().collect()
    }

    #[test]
    fn the_lines_of_makefiles_mean_the_same() {
        let line = r#"rbac:roleName=manager-role crd webhook paths="./..." output:crd:artifacts:config=config/crd/bases"#;
        let all =
            [(Part::Crd, Target::Project), (Part::Rbac, Target::Project), (Part::Webhook, Target::Project)];
        assert_eq!(parts(line), all);
        assert_eq!(request(line).expect("a request").role_name.as_deref(), Some("manager-role"));
        assert_eq!(
            parts(r#"crd paths="./..." output:crd:artifacts:config=config/crd/bases"#),
            [(Part::Crd, Target::Project)]
        );
        let object =
            request(r#"object:headerFile="hack/boilerplate.go.txt" paths="./...""#).expect("a request");
        assert!(object.parts.is_empty() && object.notes[0].contains("derive(Clone)"), "{object:?}");
    }

    #[test]
    fn outputs_are_for_all_parts_or_for_one() {
        assert_eq!(parts(""), [(Part::All, Target::Project)]);
        assert_eq!(
            parts("crd:maxDescLen=0,crdVersions={v1} rbac output:dir=out output:rbac:stdout"),
            [(Part::Crd, Target::Folder("out".into())), (Part::Rbac, Target::Stdout)]
        );
        assert_eq!(parts("install output:install:stdout"), [(Part::Install, Target::Stdout)]);
        assert_eq!(parts("crd output:none"), [(Part::Crd, Target::Nowhere)]);
        assert_eq!(request("crd:maxDescLen=0").expect("a request").max_description, Some(0));
    }

    #[test]
    fn a_wrong_word_is_named() {
        let error = |line: &str| request(line).expect_err("an error");
        assert!(error("crds").starts_with("\"crds\" is no part of the manifests"));
        assert!(error("crd:maxDescLen=x").contains("a number of bytes"));
        assert!(error("crd:crdVersions=v1beta1").contains("only crdVersions=v1"));
        assert!(error("rbac:role=x").contains("no option \"role\""));
        assert!(error("output:crd:dir=").contains("expected output:"));
        assert!(error("output:core:stdout").contains("\"core\" is no part"));
    }
}
