//! Names of fields in CEL, where a name must be an identifier and no word of the language.

/// The words of CEL.
const WORDS: [&str; 21] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "false",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "namespace",
    "null",
    "package",
    "return",
    "true",
    "var",
    "void",
    "while",
];

/// Returns the name of a field in CEL, as the API server declares the field. Returns `None` if the field has no
/// such name.
pub(super) fn escape(name: &str) -> Option<String> {
    if WORDS.contains(&name) {
        return Some(format!("__{name}__"));
    }
    // The order matters: the other replacements contain underscores.
    let escaped = name.replace("__", "__underscores__");
    let escaped = escaped.replace('.', "__dot__").replace('-', "__dash__").replace('/', "__slash__");
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    (is_name(&escaped) && !escaped.starts_with(|c: char| c.is_ascii_digit())).then_some(escaped)
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn names_are_identifiers() {
        let cases = [
            ("ipAddress", Some("ipAddress")),
            ("namespace", Some("__namespace__")),
            ("a-b.c/d", Some("a__dash__b__dot__c__slash__d")),
            ("a__b", Some("a__underscores__b")),
            ("3d", None),
            ("$ref", None),
        ];
        for (name, wanted) in cases {
            assert_eq!(escape(name).as_deref(), wanted);
        }
    }
}
