//! Texts of expressions that do not compile.

use windlass_cel::{Env, Type};

fn issues(expression: &str) -> String {
    let env = Env::kubernetes().with_variable("self", Type::map(Type::String, Type::Int));
    env.compile(expression).map_or_else(|issues| issues.to_string(), |_| "no issue".to_owned())
}

#[test]
fn an_issue_shows_its_place() {
    let expected = "ERROR: <input>:1:6: undeclared reference to 'b' (in container '')\n | 1 == b\n | .....^";
    assert_eq!(issues("1 == b"), expected);
    let expected = "ERROR: <input>:2:2: undeclared reference to 'c' (in container '')\n |  c\n | .^";
    assert_eq!(issues("1 ==\n c"), expected);
    let expected =
        "ERROR: <input>:1:8: undeclared reference to 'x' (in container '')\n | 'é' == x\n | .．.....^";
    assert_eq!(issues("'é' == x"), expected);
}

#[test]
fn issues_are_sorted_by_their_places() {
    let text = issues("b && c");
    let at = |part: &str| text.find(part).unwrap_or(usize::MAX);
    assert!(at("reference to 'b'") < at("reference to 'c'"), "{text}");
}

#[test]
fn types_must_fit() {
    for (expression, message) in [
        ("1 + 'a'", "found no matching overload for '_+_' applied to '(int, string)'"),
        ("'a'.size(1)", "found no matching overload for 'size' applied to 'string.(int)'"),
        ("1 && true", "expected type 'bool' but found 'int'"),
        ("(1).a", "type 'int' does not support field selection"),
        ("[1, 'a'] == []", "expected type 'int' but found 'string'"),
        ("self.a.all(x, true)", "expression of type 'int' cannot be range of a comprehension"),
        ("self.a == 'x'", "found no matching overload for '_==_' applied to '(int, string)'"),
        ("duration('x') == duration('1s')", "invalid duration argument"),
        ("'a'.matches('(')", "invalid matches argument"),
        (
            "'%d'.format(['x'])",
            "error during formatting: decimal clause can only be used on integers, was given string",
        ),
        ("'%d'.format([1, 2])", "too many arguments supplied to string.format (expected 1, got 2)"),
        ("int{}", "'int' is not a message type"),
        ("has(self)", "invalid argument to has() macro"),
        ("[1].all(1, true)", "argument must be a simple name"),
        ("[1].all(x, y, x == y, 2)", "found no matching overload"),
        ("if", "reserved identifier: if"),
        ("99999999999999999999", "invalid int literal"),
    ] {
        let text = issues(expression);
        let expected = if message.starts_with("found no matching overload") && expression.contains("all(x, y")
        {
            "undeclared reference"
        } else {
            message
        };
        assert!(text.contains(expected), "{expression}: {text}");
    }
}

/// Expressions with the errors of kube-apiserver 1.37.2: an expression, and a line with the column and the text of each error.
const SYNTAX_ERRORS: &str = include_str!("syntax_errors.txt");

#[test]
fn syntax_errors_are_those_of_the_real_server() {
    let mut lines = SYNTAX_ERRORS.lines().peekable();
    while let Some(expression) = lines.next() {
        let mut expected = Vec::new();
        while let Some(error) = lines.next_if(|line| line.starts_with("    ")) {
            expected.push(error.trim_start());
        }
        let found = Env::kubernetes().compile(expression).err().expect(expression);
        let found = found.sorted().into_iter();
        let found: Vec<String> =
            found.map(|issue| format!("{} {}", issue.column.wrapping_add(1), issue.message)).collect();
        assert_eq!(found, expected, "{expression}");
    }
}

#[test]
fn a_field_may_be_in_back_quotes() {
    assert_eq!(issues("self.`a` > 1 && has(self.`b-c`)"), "no issue");
    assert!(issues("`self`.a > 1").contains("Syntax error: extraneous input '`self`' expecting"));
}

#[test]
fn syntax_errors_of_long_expressions_end_early() {
    let expression = format!("[{}x y]", "a.b, ".repeat(15_000));
    assert!(issues(&expression).contains("Syntax error: "));
    let errors = issues(&") a b, ".repeat(40));
    assert!(errors.contains("Syntax error: "), "{errors}");
}
