//! Names of fields in expressions, where they must be identifiers.

/// The reserved words of the language: no variable and no field has such a name in an expression.
pub(crate) const RESERVED: [&str; 21] = [
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

const SEQUENCES: [(&str, &str); 4] =
    [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// Returns the name of a field in expressions, or `None` if the field has no such name.
pub fn escape(name: &str) -> Option<String> {
    let first = name.chars().next()?;
    if first.is_ascii_digit() {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut escaped = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        if let Some((from, to)) = SEQUENCES.iter().find(|(from, _)| rest.starts_with(from)) {
            escaped.push_str(to);
            rest = &rest[from.len()..];
            continue;
        }
        if !character.is_ascii_alphanumeric() && character != '_' {
            return None;
        }
        escaped.push(character);
        rest = &rest[1..];
    }
    Some(escaped)
}

/// Returns whether a name is a word of the language: no variable has such a name.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Returns the escaped form of a word of the language.
pub(crate) fn reserved(name: &str) -> Option<String> {
    RESERVED.contains(&name).then(|| format!("__{name}__"))
}

/// Returns the name of a field in JSON, or `None` if the name in the expression has an unknown escape sequence.
pub fn unescape(escaped: &str) -> Option<String> {
    let mut name = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(start) = rest.find("__") {
        let inner = &rest[start + 2..];
        let length = inner.find('_').unwrap_or(inner.len());
        if length == 0 || !inner[length..].starts_with("__") {
            // Not a sequence: at most one character is skipped, as another sequence may begin at the next one.
            name.push_str(&rest[..=start]);
            rest = &rest[start + 1..];
            continue;
        }
        let word = &inner[..length];
        name.push_str(&rest[..start]);
        match SEQUENCES.iter().find(|(_, sequence)| sequence.trim_matches('_') == word) {
            Some((from, _)) => name.push_str(from),
            None if RESERVED.contains(&word) && word.len() + 4 == escaped.len() => name.push_str(word),
            None => return None,
        }
        rest = &inner[length + 2..];
    }
    name.push_str(rest);
    Some(name)
}

#[cfg(test)]
mod tests {
    use super::{escape, unescape};

    #[test]
    fn names_are_escaped_and_restored() {
        for (name, escaped) in [
            ("replicas", "replicas"),
            ("x-y", "x__dash__y"),
            ("a.b/c", "a__dot__b__slash__c"),
            ("a__b", "a__underscores__b"),
            ("namespace", "__namespace__"),
            ("_a", "_a"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(escaped));
            assert_eq!(unescape(escaped).as_deref(), Some(name));
        }
        assert_eq!(escape("1a"), None);
        assert_eq!(escape("a b"), None);
        assert_eq!(unescape("a__what__b"), None);
    }
}
