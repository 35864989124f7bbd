use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn complaints_are_gos() {
    let cases: [(&[u8], &str); 14] = [
        (b"", "unexpected end of JSON input"),
        (b"{", "unexpected end of JSON input"),
        (b"{\"a\":1} x", "invalid character 'x' after top-level value"),
        (b"{\"a\":1}{}", "invalid character '{' after top-level value"),
        (b"{a:1}", "invalid character 'a' looking for beginning of object key string"),
        (b"{\"a\" 1}", "invalid character '1' after object key"),
        (b"{\"a\":1 \"b\"}", "invalid character '\"' after object key:value pair"),
        (b"[1 2]", "invalid character '2' after array element"),
        (b"tru3", "invalid character '3' in literal true (expecting 'e')"),
        (b"\"a\nb\"", "invalid character '\\n' in string literal"),
        (b"\"\\x\"", "invalid character 'x' in string escape code"),
        (b"-a", "invalid character 'a' in numeric literal"),
        (b"1.x", "invalid character 'x' after decimal point in numeric literal"),
        (b"'a'", "invalid character '\\'' looking for beginning of value"),
    ];
    for (text, complaint) in cases {
        assert_eq!(parse(text).expect_err("broken"), complaint);
    }
}

#[test]
fn duplicates_are_named_once_and_the_last_wins() {
    let text = br#"{"metadata":{"name":"a","name":"b","name":"c"},"list":[{"x":1},{"x":1,"x":2}]}"#;
    let parsed = parse(text).expect("JSON");
    assert_eq!(parsed.value, json!({"metadata": {"name": "c"}, "list": [{"x": 1}, {"x": 2}]}));
    assert_eq!(parsed.duplicates, ["metadata.name", "list[1].x"]);
}

#[test]
fn what_is_too_deep_is_refused_and_does_not_overflow() {
    let deep = "[".repeat(1_000_000);
    assert_eq!(parse(deep.as_bytes()).expect_err("deep"), "invalid character '[' exceeded max depth");
}

#[test]
fn fields_are_found_where_the_text_names_them() {
    let text = br#"{"a": {"b": 1, "c": [{"d": 1}, {"d": 2, "d\u0064": 3}]}, "a": {"b": 2}, "a.b": 3}"#;
    let found = occurrences(text, ["a.b", "a.c[1].dd", "a", "none", "a.c[1].d"]);
    let at = |first, second| Occurrences { first, second };
    // The member `a.b` has the same path as the member `b` of `a`.
    assert_eq!(
        found,
        [at(Some(1), Some(7)), at(Some(5), None), at(Some(0), Some(6)), at(None, None), at(Some(4), None)]
    );
}

#[test]
fn few_of_many_duplicates_are_reported() {
    let members = vec![r#""a":1,"b":2"#; 100].join(",");
    let many: Vec<String> = (0..200).map(|n| format!(r#""k{n}":1,"k{n}":2"#)).collect();
    assert_eq!(parse(format!("{{{members}}}").as_bytes()).expect("JSON").duplicates, ["a", "b"]);
    assert_eq!(parse(format!("{{{}}}", many.join(",")).as_bytes()).expect("JSON").duplicates.len(), 100);
    let long = format!(r#"{{"{}":{{{}}}}}"#, "x".repeat(1_000_000), many.join(","));
    let duplicates = parse(long.as_bytes()).expect("JSON").duplicates;
    assert_eq!(duplicates.len(), 1);
    assert!(duplicates[0].ends_with("x.k0"));
}

#[test]
fn numbers_are_integers_where_they_can_be() {
    let parsed = parse(b"[1, -9223372036854775808, 1.0, 1e3, 18446744073709551615]").expect("JSON");
    assert_eq!(parsed.value, json!([1, i64::MIN, 1.0, 1000.0, 18_446_744_073_709_551_615.0]));
    assert!(parse(b"1e999").is_err());
}

#[test]
fn broken_unicode_becomes_the_replacement_character() {
    assert_eq!(parse(b"\"\\ud800x\"").expect("JSON").value, json!("\u{fffd}x"));
    assert_eq!(parse(b"\"\\ud83d\\ude00\"").expect("JSON").value, json!("😀"));
    assert_eq!(parse(b"\"a\xffb\"").expect("JSON").value, json!("a\u{fffd}b"));
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
        let _ = occurrences(&bytes, ["a", "a.b"]);
    }

    #[test]
    fn agrees_with_serde_json(text in r#"[\[\]{}:,"a0-9.e\\ utrfalsn-]{0,40}"#) {
        let ours = parse(text.as_bytes()).ok().map(|parsed| parsed.value.to_string());
        let theirs = serde_json::from_str::<Value>(&text).ok().map(|value| value.to_string());
        if let (Some(ours), Some(theirs)) = (&ours, &theirs) {
            // Integers beyond 64 bits with sign become floats here, as in Go.
            if !ours.contains("e+") && !theirs.bytes().any(|b| b.is_ascii_digit()) {
                prop_assert_eq!(ours, theirs);
            }
        } else if !text.contains("\\u") {
            prop_assert_eq!(ours.is_some(), theirs.is_some(), "{}", text);
        }
    }
}
