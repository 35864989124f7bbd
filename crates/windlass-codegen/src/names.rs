//! Rust names for the names of the API.

/// Words that Rust reserves, and names that are not raw identifiers.
const RESERVED: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "union", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// Returns a name in snake case: `podIPs` is `pod_ips`, `HTTPRoute` is `http_route`. Other characters become underscores.
pub(crate) fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (place, &c) in chars.iter().enumerate() {
        if c.is_ascii_uppercase() && place > 0 {
            let (before, next) = (chars[place - 1], chars.get(place + 1));
            // The `s` of a plural, as in `IPs`, begins no word.
            let is_plural = next == Some(&'s') && chars.get(place + 2).is_none_or(char::is_ascii_uppercase);
            let begins_word = next.is_some_and(char::is_ascii_lowercase) && !is_plural;
            if before.is_ascii_alphanumeric() && (!before.is_ascii_uppercase() || begins_word) {
                out.push('_');
            }
        }
        out.push(if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' });
    }
    legal(out)
}

/// Returns a name in upper camel case: `host-network` is `HostNetwork`, `IPPool` stays.
pub(crate) fn camel(name: &str) -> String {
    let mut out = String::new();
    let mut begins_word = true;
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            begins_word = true;
        } else if std::mem::take(&mut begins_word) {
            out.push(c.to_ascii_uppercase());
        } else {
            out.push(c);
        }
    }
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, 'N');
    }
    if matches!(out.as_str(), "Self") { format!("{out}_") } else { out }
}

/// Makes a valid identifier: the first character is a letter, and an underscore follows a reserved word of
/// Rust.
fn legal(name: String) -> String {
    let blank = name.chars().all(|c| c == '_');
    match name.chars().next() {
        _ if blank => format!("n{name}"),
        Some(first) if first.is_ascii_digit() => format!("n{name}"),
        _ if RESERVED.contains(&name.as_str()) => format!("{name}_"),
        _ => name,
    }
}

/// Returns the plural of a kind in the case of the kind, from the plural of the resource: `IPPool` and
/// `ippools` give `IPPools`.
pub(crate) fn plural(kind: &str, resource: &str) -> String {
    let common = kind.chars().zip(resource.chars()).take_while(|(a, b)| a.to_ascii_lowercase() == *b).count();
    let (stem, ending): (String, String) =
        (kind.chars().take(common).collect(), resource.chars().skip(common).collect());
    camel(&(stem + &ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_split_into_words() {
        let cases = [
            ("podIPs", "pod_ips"),
            ("IPPools", "ip_pools"),
            ("HTTPRoute", "http_route"),
            ("x-kubernetes-list-type", "x_kubernetes_list_type"),
            ("v1alpha1", "v1alpha1"),
            ("type", "type_"),
            ("$ref", "_ref"),
            ("_", "n_"),
            ("3scale", "n3scale"),
            ("s3Bucket", "s3_bucket"),
        ];
        for (name, wanted) in cases {
            assert_eq!(snake(name), wanted);
        }
        assert_eq!(camel("host-network"), "HostNetwork");
        assert_eq!(camel("10.0"), "N100");
        assert_eq!(camel("self"), "Self_");
    }

    #[test]
    fn a_plural_has_the_case_of_the_kind() {
        let cases = [
            ("IPPool", "ippools", "IPPools"),
            ("NetworkPolicy", "networkpolicies", "NetworkPolicies"),
            ("Endpoints", "endpoints", "Endpoints"),
            ("Ingress", "ingresses", "Ingresses"),
            ("Mouse", "mice", "Mice"),
        ];
        for (kind, resource, wanted) in cases {
            assert_eq!(plural(kind, resource), wanted);
        }
    }
}
