use serde_json::json;

use crate::fields::{FieldFilter, FieldPath, FieldPattern, FieldSet, PathElement, PatternElement};

fn set(fields: serde_json::Value) -> FieldSet {
    FieldSet::from_v1(&fields).unwrap()
}

#[test]
fn sets_are_written_in_the_order_of_elements() {
    let fields = json!({
        "v:10": {}, "v:9": {}, "v:\"a\"": {}, "i:2": {}, "i:10": {},
        "k:{\"port\":443}": {"f:x": {}}, "k:{\"port\":80}": {".": {}, "f:x": {}}, "f:b": {}, "f:a": {"f:c": {}},
    });
    let mut text = String::new();
    set(fields.clone()).write_v1(&mut text);
    assert_eq!(
        text,
        r#"{"f:a":{"f:c":{}},"f:b":{},"k:{\"port\":80}":{".":{},"f:x":{}},"k:{\"port\":443}":{"f:x":{}},"v:9":{},"v:10":{},"v:\"a\"":{},"i:2":{},"i:10":{}}"#
    );
    assert_eq!(set(fields.clone()).to_v1(), fields);
}

#[test]
fn texts_are_escaped_as_kubernetes_does() {
    let element = PathElement::key([("name", "<a>&\u{2028}\"\\\u{1}\u{8}é".into())]);
    let set: FieldSet =
        [FieldPath::from_iter([element]), FieldPath::of_fields(["x\"\n<"])].into_iter().collect();
    let mut text = String::new();
    set.write_v1(&mut text);
    assert_eq!(
        text,
        r#"{"f:x\"\n<":{},"k:{\"name\":\"\\u003ca\\u003e\\u0026\\u2028\\\"\\\\\\u0001\\u0008é\"}":{}}"#
    );
    assert_eq!(FieldSet::from_v1(&serde_json::from_str(&text).unwrap()).unwrap(), set);
}

#[test]
fn unknown_elements_are_ignored_and_malformed_ones_are_errors() {
    assert_eq!(set(json!({"x:later": {"f:a": {}}, "f:a": {}})), set(json!({"f:a": {}})));
    assert!(set(json!(null)).is_empty());
    for malformed in ["", "f", "nothing", "i:1.5", "i:", "v:", "v:x", "k:[]", "k:{\"a\":1} x", "é"] {
        assert!(FieldSet::from_v1(&json!({malformed: {}})).is_err(), "{malformed:?}");
    }
    assert!(FieldSet::from_v1(&json!({"f:a": 3})).is_err());
}

#[test]
fn deep_fields_are_an_error() {
    let deep = (0..600).fold(json!({}), |below, _| json!({"f:a": below}));
    assert!(FieldSet::from_v1(&deep).is_err());
}

#[test]
fn members_are_listed_before_what_is_below() {
    let set = set(json!({"f:a": {".": {}, "f:x": {}}, "f:b": {}}));
    assert_eq!(set.to_string(), ".a\n.b\n.a.x");
    assert_eq!(set.len(), 3);
}

#[test]
fn a_recursive_difference_removes_what_is_below() {
    let all = set(json!({"f:a": {".": {}, "f:x": {}}, "f:b": {}}));
    let a = set(json!({"f:a": {}}));
    assert_eq!(all.difference(&a), set(json!({"f:a": {"f:x": {}}, "f:b": {}})));
    assert_eq!(all.recursive_difference(&a), set(json!({"f:b": {}})));
    assert_eq!(all.leaves(), set(json!({"f:a": {"f:x": {}}, "f:b": {}})));
}

#[test]
fn numbers_are_equal_by_value() {
    assert_eq!(PathElement::value(json!(1)), PathElement::value(json!(1.0)));
    assert_ne!(PathElement::value(json!(1)), PathElement::value(json!("1")));
    // A number in fieldsV1 is a float, and printed like one.
    let path = set(json!({"k:{\"n\":1000000}": {}})).iter().next().unwrap();
    assert_eq!(path.to_string(), "[n=1e+06]");
}

#[test]
fn filters_select_fields() {
    let all = set(json!({"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}, "f:status": {".": {}, "f:d": {}}}));
    let status = FieldFilter::Exclude(set(json!({"f:status": {}})));
    assert_eq!(status.apply(&all), set(json!({"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}})));
    let is = |name: &str| PatternElement::Is(PathElement::field(name));
    let either = FieldPattern::prefix([is("spec"), is("a")]).or(FieldPattern::prefix([is("status")]));
    let selected = FieldFilter::Include(either).apply(&all);
    assert_eq!(selected, set(json!({"f:spec": {"f:a": {}}, "f:status": {".": {}, "f:d": {}}})));
    assert_eq!(FieldFilter::Include(FieldPattern::default()).apply(&all), all);
}

#[test]
fn sets_of_very_different_sizes_are_joined_like_others() {
    let numbered =
        |range: std::ops::Range<usize>| range.map(|number| FieldPath::of_fields(["a", &*number.to_string()]));
    let large: FieldSet = numbered(0..500).collect();
    let small: FieldSet = numbered(498..502).collect();
    let shared: FieldSet = numbered(498..500).collect();
    assert_eq!(large.intersection(&small), shared);
    assert_eq!(small.intersection(&large), shared);
    assert_eq!(small.difference(&large), numbered(500..502).collect());
    assert_eq!(large.difference(&small), numbered(0..498).collect());
    let each: Vec<FieldSet> = numbered(0..502).map(|path| [path].into_iter().collect()).collect();
    let all: Vec<&FieldSet> = each.iter().collect();
    assert_eq!(FieldSet::union_of(&all), large.union(&small));
    assert_eq!(FieldSet::union_of(&[]), FieldSet::default());
}
