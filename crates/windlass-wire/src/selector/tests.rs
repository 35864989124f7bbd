use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn labels(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn matches(selector: &str, object: &Value) -> bool {
    LabelSelector::parse(selector).expect(selector).matches(Some(&labels(object)))
}

#[test]
fn label_selectors_match_by_each_operator() {
    let object = json!({"app": "web", "n": "5", "empty": ""});
    for yes in [
        "",
        "app",
        "app=web",
        "app==web",
        "app!=db",
        "app in (web,db)",
        "app notin (db)",
        "!old",
        "old!=x",
        "n>4",
        "n<6",
        "empty=",
        "empty in ()",
        "app=web,n>4",
        "old notin (a)",
        "app in (,web)",
        " app = web , n ",
    ] {
        assert!(matches(yes, &object), "{yes}");
    }
    for no in
        ["app=db", "!app", "old", "app notin (web)", "n>5", "n<5", "app>1", "app=web,old", "app in (a,b)"]
    {
        assert!(!matches(no, &object), "{no}");
    }
    assert!(LabelSelector::parse("!a").expect("parsed").matches(None));
}

/// Asked of the real server, 1.36.3.
#[test]
fn broken_label_selectors_are_refused_with_the_real_words() {
    let key_rule = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let cases = [
        ("a=b=c", "found '=', expected: ',' or 'end of string'".to_owned()),
        ("a in", "unable to parse requirement: found '' expected: '('".to_owned()),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier".to_owned()),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'".to_owned()),
        (",a", "found ',', expected: !, identifier, or 'end of string'".to_owned()),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt".to_owned()),
        ("!", "unable to parse requirement: found '', expected: identifier".to_owned()),
        ("a>x", "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer".to_owned()),
        ("-a=b", format!("unable to parse requirement: <nil>: Invalid value: \"-a\": {key_rule}")),
        ("a=-b", "unable to parse requirement: values[0][a]: Invalid value: \"-b\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')".to_owned()),
        ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'".to_owned()),
        ("a,", "found '', expected: identifier after ','".to_owned()),
        ("a!", "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt".to_owned()),
        ("a=b,,c", "found ',', expected: identifier after ','".to_owned()),
        ("a in (b,(", "unable to parse requirement: found '(', expected: ',', or identifier".to_owned()),
        ("%", format!("unable to parse requirement: <nil>: Invalid value: \"%\": {key_rule}")),
        ("a=!!", "unable to parse requirement: found '!', expected: identifier".to_owned()),
        ("a,=b", "found '=', expected: identifier after ','".to_owned()),
        ("=b", "found '=', expected: !, identifier, or 'end of string'".to_owned()),
        ("a=>1", "unable to parse requirement: found '>', expected: identifier".to_owned()),
    ];
    for (selector, message) in cases {
        let error = LabelSelector::parse(selector).expect_err(selector);
        assert_eq!((error.code(), error.to_string()), (400, message), "{selector}");
    }
}

#[test]
fn objects_selectors_combine_labels_and_expressions() {
    let selector = LabelSelector::from_object(&json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["a"]}, {"key": "x", "operator": "Exists"}]
    }));
    assert!(selector.matches(Some(&labels(&json!({"app": "web", "x": ""})))));
    assert!(!selector.matches(Some(&labels(&json!({"app": "web", "x": "", "tier": "a"})))));
}

#[test]
fn the_order_of_values_does_not_matter() {
    let selector = LabelSelector::from_object(&json!({
        "matchExpressions": [{"key": "tier", "operator": "In", "values": ["c", "a", "b", "a"]}]
    }));
    for tier in ["a", "b", "c"] {
        assert!(selector.matches(Some(&labels(&json!({"tier": tier})))), "{tier}");
    }
    assert!(!selector.matches(Some(&labels(&json!({"tier": "d"})))));
    assert_eq!(selector.to_string(), "tier in (a,b,c)");
}

#[test]
fn field_selectors_match_and_unescape() {
    let selector =
        FieldSelector::parse(r"metadata.name=a\,b\=c,status.phase!=Running,x==1,").expect("parsed");
    let value = |field: &str| {
        match field {
            "metadata.name" => "a,b=c",
            "status.phase" => "Pending",
            "x" => "1",
            _ => "",
        }
        .to_owned()
    };
    assert!(selector.matches(value));
}

#[test]
fn broken_field_selectors_are_refused_with_the_real_words() {
    let cases = [
        ("a", "invalid selector: 'a'; can't understand 'a'"),
        (r"metadata.name=a\b", r"invalid field selector: invalid escape sequence: \b"),
        ("metadata.name=a=b", "invalid field selector: unescaped character in value: 61"),
        (r"metadata.name=a\", r"invalid field selector: invalid escape sequence: \"),
    ];
    for (selector, message) in cases {
        assert_eq!(FieldSelector::parse(selector).expect_err(selector).to_string(), message);
    }
    let unknown = FieldSelector::parse("foo=bar")
        .expect("parsed")
        .check(&[], |field| unknown_field(field, &[]))
        .expect_err("unknown");
    assert_eq!(
        unknown.to_string(),
        "\"foo\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
    );
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "[ab!=<>(), \\\\\u{0}é-]{0,30}|.{0,30}") {
        let _ = LabelSelector::parse(&text);
        let _ = FieldSelector::parse(&text);
    }
}
