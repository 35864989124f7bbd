use super::{Pattern, compile};

fn matches(pattern: &str, text: &str) -> bool {
    Pattern::new(pattern).is_match(text)
}

#[test]
fn perl_classes_are_ascii() {
    assert!(matches(r"^\d+$", "12"));
    assert!(!matches(r"^\d+$", "١٢"));
    assert!(!matches(r"^\w+$", "é"));
    assert!(matches(r"^[\w.-]+$", "a.b-c"));
    assert!(matches(r"^\S+$", "é"));
    assert!(matches(r"^[^\W]+$", "ab"));
}

#[test]
fn braces_that_repeat_nothing_are_literal() {
    assert!(matches(r"^{a}$", "{a}"));
    assert!(matches(r"^\$\{[a-z]{2,3}}$", "${ab}"));
    assert!(matches(r"^a{,2}$", "a{,2}"));
    assert!(!matches(r"^a{2}$", "a"));
    assert!(matches(r"^\p{Lu}+\x{41}$", "ÄA"));
}

#[test]
fn class_operators_of_the_regex_crate_mean_nothing() {
    assert!(matches(r"^[a&&b]+$", "a&b"));
    assert!(matches(r"^[[a]+$", "[a"));
    assert!(matches(r"^[]a]+$", "]a"));
    assert!(matches(r"^[[:alpha:]]+$", "ab"));
    assert!(matches(r"^[!--]$", "-"));
}

#[test]
fn quoted_text_is_literal() {
    assert!(matches(r"^\Qa.b\E+$", "a.bb"));
    assert!(!matches(r"^\Qa.b\E$", "axb"));
}

#[test]
fn a_broken_pattern_matches_nothing() {
    assert!(!matches("(", "("));
}

#[test]
fn errors_read_as_in_go() {
    let pairs = [
        ("(", "missing closing ): `(`"),
        ("a)", "unexpected ): `a)`"),
        ("[a-", "missing closing ]: `[a-`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("(?!x)", "invalid or unsupported Perl syntax: `(?!`"),
        ("*a", "missing argument to repetition operator: `*`"),
        (r"\8", r"invalid escape sequence: `\8`"),
    ];
    for (pattern, text) in pairs {
        assert_eq!(compile(pattern).unwrap_err(), format!("error parsing regexp: {text}"));
    }
}
