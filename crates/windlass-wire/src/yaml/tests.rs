use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn plain_scalars_are_yaml_1_1() {
    let parsed =
        parse(b"a: yes\nb: 'yes'\nc: 0644\nd: 1.5\ne: ~\nf: on\ng: 12\nh: 2001-01-01\n").expect("YAML");
    assert_eq!(
        parsed.value,
        json!({"a": true, "b": "yes", "c": 420, "d": 1.5, "e": null, "f": true, "g": 12, "h": "2001-01-01"})
    );
}

#[test]
fn a_float_without_a_fraction_is_an_integer() {
    let expected = json!({"a": 1, "b": 100, "c": 0, "d": 10_000_000_000_000_000_i64, "e": 1.5, "f": 1e19});
    for text in [
        &br#"{"a": 1.0, "b": 1e2, "c": -0.0, "d": 1e16, "e": 1.5, "f": 1e19}"#[..],
        b"a: 1.0\nb: 1e2\nc: -0.0\nd: 1e16\ne: 1.5\nf: 1e19\n",
    ] {
        assert_eq!(parse(text).expect("YAML").value, expected);
    }
}

#[test]
fn a_key_that_is_no_text_is_written_as_text() {
    let text = b"yes: 1\n'yes': 2\nn: 3\n0x10: 4\n1.50: 5\nplain: 6\n\"on\": 7\n";
    let expected = json!({"true": 1, "yes": 2, "false": 3, "16": 4, "1.5": 5, "plain": 6, "on": 7});
    assert_eq!(parse(text).expect("YAML").value, expected);
}

#[test]
fn a_duplicate_key_is_reported_with_its_line() {
    let parsed = parse(b"kind: ConfigMap\nmetadata:\n  name: a\n  name: b\n").expect("YAML");
    assert_eq!(parsed.value, json!({"kind": "ConfigMap", "metadata": {"name": "b"}}));
    assert_eq!(parsed.duplicates, ["yaml: unmarshal errors:\n  line 4: key \"name\" already set in map"]);
}

#[test]
fn alias_bombs_and_deep_nesting_are_refused() {
    let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let before = level - 1;
        let list = vec![format!("*a{before}"); 10].join(",");
        bomb += format!("a{level}: &a{level} [{list}]\n").as_str();
    }
    assert!(parse(bomb.as_bytes()).is_err());
    assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    assert!(parse(b"a: {b: 1\nc: 2").is_err());
}

#[test]
fn the_deepest_nesting_fits_the_stack() {
    let depth = MAX_DEPTH - 1;
    let block: Vec<String> = (0..depth).map(|level| format!("{}a:", " ".repeat(level))).collect();
    let block = block.join("\n");
    let sequence = format!("a:\n {}x\n", "- ".repeat(depth - 1));
    let maps = format!("{}1{}", "{a: ".repeat(200), "}".repeat(200));
    let json = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
    for text in [block, sequence, maps, json] {
        let parsed = parse(text.as_bytes()).expect("YAML");
        let written = write(&parsed.value).expect("YAML");
        assert_eq!(parse(written.as_bytes()).expect("YAML").value, parsed.value);
        assert!(parse(format!("{}1{}", "{\"a\": ".repeat(100_000), "}".repeat(100_000)).as_bytes()).is_err());
    }
}

#[test]
fn json_is_yaml() {
    let parsed = parse(b" {\"a\": [1, \"yes\", 1e3, null], \"b\": {}}\n").expect("YAML");
    assert_eq!(parsed.value, json!({"a": [1, "yes", 1_000, null], "b": {}}));
    let parsed = parse(b"{\"a\": 1,\n \"a\": 2}").expect("YAML");
    assert_eq!(parsed.value, json!({"a": 2}));
    assert_eq!(parsed.duplicates, ["yaml: unmarshal errors:\n  line 2: key \"a\" already set in map"]);
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn what_is_written_is_read_back(text in "[ -~]{0,20}", number in any::<i64>(), flag in any::<bool>()) {
        let value = json!({"text": text, "list": [number, flag, null], "map": {"k": {"x": text}}});
        let written = write(&value).expect("YAML");
        prop_assert_eq!(parse(written.as_bytes()).expect("YAML").value, value, "{}", written);
    }
}

#[test]
fn only_the_first_document_counts() {
    for (text, first) in [
        ("a: 1\n---\nb: 2\n", "a: 1\n"),
        ("---\na: 1\n--- # next\nb: 2\n", "---\na: 1\n"),
        ("# note\n---\na: 1\n...\nb", "# note\n---\na: 1\n"),
        ("a: |\n  ---\n", "a: |\n  ---\n"),
        ("a: 1\n---b: 2\n", "a: 1\n---b: 2\n"),
        ("", ""),
    ] {
        assert_eq!(first_document(text), first, "{text:?}");
    }
}
