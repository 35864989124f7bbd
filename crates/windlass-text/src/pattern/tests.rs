use super::{Expression, MAX_PATTERNS, OutOfSteps, Pattern, Patterns, compile};

fn matches(pattern: &str, text: &str) -> bool {
    Pattern::new(pattern).is_match_within(text, &mut { usize::MAX }).unwrap()
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

/// A pattern whose automaton has tens of thousands of states: a backtracking search, or a search with all states, takes minutes.
const SLOW: &str = "(?:(?:x{1,30}){1,30}){1,30}y";

#[test]
fn a_search_has_a_limit() {
    let (long, short) = ("x".repeat(1_200_000), "x".repeat(10));
    let start = std::time::Instant::now();
    let slow = Pattern::new(SLOW);
    let mut steps = 50_000_000;
    assert_eq!(slow.is_match_within(&short, &mut steps), Ok(false));
    assert!(steps < 50_000_000, "a search takes steps");
    assert_eq!(slow.is_match_within(&long, &mut steps), Err(OutOfSteps));
    assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn searches_share_their_steps() {
    let expression = Expression::compile("(?:(?:x{1,20}){1,20}){1,20}y").unwrap();
    let mut steps = 2_000_000;
    let text = "x".repeat(50);
    let many = (0..100_000).find(|_| expression.is_match_within(&text, &mut steps).is_err());
    assert!(many.is_some_and(|count| count < 1_000), "{many:?}");
    assert_eq!(Expression::compile("x").unwrap().is_match_within(&text, &mut 0), Err(OutOfSteps));
}

#[test]
fn usual_patterns_need_few_steps() {
    let long = "ab0-".repeat(300_000);
    for (pattern, expected) in [
        (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", false),
        (r"^[a-z0-9]([-a-z0-9]*[-a-z0-9])?$", true),
        (r"^(\w|-)+$", true),
        (r"\b0\b", false),
        (r"^[A-Za-z0-9+/=-]*$", true),
        (r"^.{1,100}$", false),
    ] {
        let expression = Expression::compile(pattern).unwrap();
        assert_eq!(expression.is_match_within(&long, &mut { long.len() / 4 }), Ok(expected), "{pattern}");
    }
}

#[test]
fn the_compilation_takes_steps() {
    let pattern = Pattern::new("^only-in-this-test$");
    let mut steps = 50_000_000;
    assert_eq!(pattern.is_match_within("a", &mut steps), Ok(false));
    let spent = 50_000_000 - steps;
    let mut steps = 50_000_000;
    assert_eq!(pattern.is_match_within("a", &mut steps), Ok(false));
    assert!(50_000_000 - steps < spent / 10, "the compiled pattern is kept");
    assert_eq!(Pattern::new("^never-compiled$").is_match_within("a", &mut 0), Err(OutOfSteps));
}

#[test]
fn patterns_that_the_process_has_dropped_are_compiled_again() {
    let patterns: Vec<Pattern> = (0..1_000).map(|number| Pattern::new(&format!("^x{number}$"))).collect();
    for _ in 0..2 {
        for (number, pattern) in patterns.iter().enumerate() {
            let mut steps = usize::MAX;
            assert_eq!(pattern.is_match_within(&format!("x{number}"), &mut steps), Ok(true));
            assert_eq!(pattern.is_match_within("y", &mut steps), Ok(false));
        }
    }
}

#[test]
fn a_schema_has_a_limit_of_patterns() {
    let patterns = Patterns::default();
    for number in 0..MAX_PATTERNS {
        assert_eq!(patterns.error(&format!("^x{number}$")), None);
    }
    assert_eq!(patterns.error("^x1$"), None, "a known pattern");
    assert_eq!(patterns.error("^one-more$").unwrap(), "the schema has more than 10000 patterns");
    let patterns = Patterns::default();
    for number in 0..200 {
        assert_eq!(patterns.error(&format!("(?:x{{1,100}}){{1,100}}{number}")), None);
    }
    let error = patterns.error("(?:x{1,100}){1,100}y").unwrap();
    assert_eq!(error, "the schema has more than 200 patterns that are large when compiled");
    assert_eq!(patterns.error("a{1001}"), compile("a{1001}").err());
    assert_eq!(patterns.error("(a"), compile("(a").err());
}
