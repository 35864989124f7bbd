use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use proptest::prelude::*;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{apply_changes, is_deeper_than, keeps_order};

/// A type that lacks some fields of the objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Known {
    #[serde(default)]
    size: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    colour: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    labels: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    features: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    sizes: BTreeSet<Size>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Size {
    width: u32,
    #[serde(default)]
    height: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Part {
    name: String,
    #[serde(default)]
    count: u32,
}

fn part() -> impl Strategy<Value = Part> {
    ("[a-d]", 0..3_u32).prop_map(|(name, count)| Part { name, count })
}

fn size() -> impl Strategy<Value = Size> {
    (0..3_u32, 0..3_u32).prop_map(|(width, height)| Size { width, height })
}

fn known() -> impl Strategy<Value = Known> {
    let labels = proptest::collection::btree_map("[a-c]", "[x-z]", 0..3);
    let parts = proptest::collection::vec(part(), 0..4);
    let features = proptest::collection::btree_set("[a-d]", 0..4);
    let sizes = proptest::collection::btree_set(size(), 0..4);
    (0..3_u32, proptest::option::of("[a-b]"), parts, labels, features, sizes).prop_map(
        |(size, colour, parts, labels, features, sizes)| Known {
            size,
            colour,
            parts,
            labels,
            features,
            sizes,
        },
    )
}

/// Applies the changes between `before` and `after`, two objects of the type `K`, to an object.
fn changed<K: DeserializeOwned + Serialize>(original: &Value, before: &Value, after: &Value) -> Value {
    apply_changes(original, before, after, &|| keeps_order::<K>(original, before))
}

/// Applies the changes between `before` and `after`, two objects of a type with sorted sets.
fn apply(original: &Value, before: &Value, after: &Value) -> Value {
    apply_changes(original, before, after, &|| false)
}

/// Returns an object in a server's JSON, with fields that the type does not know, and with sets in the reverse order.
fn with_unknown_fields(known: &Known) -> Value {
    let mut object = serde_json::to_value(known).unwrap();
    object["unknown"] = json!({"keep": [1, 2]});
    object["nothing"] = Value::Null;
    for (at, part) in object.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten().enumerate()
    {
        part["unknown"] = json!(at);
    }
    for set in ["features", "sizes"] {
        object.get_mut(set).and_then(Value::as_array_mut).into_iter().for_each(|set| set.reverse());
    }
    object
}

proptest! {
    #[test]
    fn a_change_of_the_known_fields_keeps_the_unknown_ones(before in known(), after in known()) {
        let original = with_unknown_fields(&before);
        let (old, new) = (serde_json::to_value(&before).unwrap(), serde_json::to_value(&after).unwrap());
        let changed = changed::<Known>(&original, &old, &new);
        prop_assert_eq!(&changed["unknown"], &original["unknown"]);
        prop_assert!(changed.get("nothing").is_some());
        prop_assert_eq!(serde_json::from_value::<Known>(changed.clone()).unwrap(), after);
        let patch = json_patch::diff(&original, &changed);
        let mut patched = original.clone();
        json_patch::patch(&mut patched, &patch).unwrap();
        prop_assert_eq!(patched, changed);
    }

    #[test]
    fn without_a_change_nothing_differs(before in known()) {
        let original = with_unknown_fields(&before);
        let old = serde_json::to_value(&before).unwrap();
        prop_assert_eq!(changed::<Known>(&original, &old, &old), original);
    }

    #[test]
    fn the_depth_of_any_text_is_known(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = is_deeper_than(&text, 5);
    }
}

#[test]
fn an_element_keeps_its_unknown_fields_wherever_it_moves() {
    let original = json!([{"name": "a", "x": 1}, {"name": "b", "x": 2}, {"name": "c", "x": 3}]);
    let before = json!([{"name": "a"}, {"name": "b"}, {"name": "c"}]);
    let after = json!([{"name": "new"}, {"name": "c", "count": 5}, {"name": "a"}]);
    assert_eq!(
        apply(&original, &before, &after),
        json!([{"name": "new"}, {"name": "c", "count": 5, "x": 3}, {"name": "a", "x": 1}])
    );
}

#[test]
fn the_right_element_of_a_set_is_removed() {
    let original = json!(["b", "a"]);
    assert_eq!(apply(&original, &json!(["a", "b"]), &json!(["b"])), json!(["b"]));
}

#[test]
fn a_named_element_keeps_its_unknown_fields_in_a_set() {
    let original = json!([{"name": "b", "x": 2}, {"name": "a", "x": 1}]);
    let (before, after) =
        (json!([{"name": "a"}, {"name": "b"}]), json!([{"name": "a", "count": 1}, {"name": "b"}]));
    assert_eq!(
        apply(&original, &before, &after),
        json!([{"name": "a", "count": 1, "x": 1}, {"name": "b", "x": 2}])
    );
}

#[test]
fn a_number_that_is_written_in_another_way_is_the_same() {
    let original = json!([{"weight": 1, "x": 1}, {"weight": 2, "x": 2}]);
    let (before, after) =
        (json!([{"weight": 1.0}, {"weight": 2.0}]), json!([{"weight": 1.0}, {"weight": 3.0}]));
    assert_eq!(apply(&original, &before, &after), json!([{"weight": 1, "x": 1}, {"weight": 3.0, "x": 2}]));
}

#[test]
fn elements_without_a_name_are_compared_by_index() {
    let original = json!([{"size": 1, "x": 1}, {"size": 2, "x": 2}]);
    let (before, after) = (json!([{"size": 1}, {"size": 2}]), json!([{"size": 1}, {"size": 3}]));
    assert_eq!(apply(&original, &before, &after), json!([{"size": 1, "x": 1}, {"size": 3, "x": 2}]));
}

/// A window of time. Types of windows write times without fractions of seconds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct Window {
    from: Time,
}

/// Returns the change of the second of two windows by a defaulter of the type `K`, and the object of the user.
fn move_the_second_window<K: DeserializeOwned + Serialize>(from: [&str; 2]) -> (Value, Value) {
    let original = json!(from.map(|from| json!({"from": format!("{from}.000Z"), "owner": from})));
    let before = serde_json::to_value(serde_json::from_value::<K>(original.clone()).unwrap()).unwrap();
    let mut after = before.clone();
    after[1]["from"] = json!("2030-01-01T00:00:00Z");
    (changed::<K>(&original, &before, &after), original)
}

#[test]
fn elements_with_values_in_another_form_keep_their_unknown_fields() {
    let times = ["2026-05-02T00:00:00", "2026-05-01T00:00:00"];
    let (changed, mut expected) = move_the_second_window::<Vec<Window>>(times);
    expected[1]["from"] = json!("2030-01-01T00:00:00Z");
    assert_eq!(changed, expected);
}

#[test]
fn elements_of_a_sorted_set_get_no_fields_of_other_elements() {
    let times = ["2026-05-02T00:00:00", "2026-05-01T00:00:00"];
    let (changed, _) = move_the_second_window::<BTreeSet<Window>>(times);
    assert_eq!(changed, json!([{"from": "2026-05-01T00:00:00Z"}, {"from": "2030-01-01T00:00:00Z"}]));
}

#[test]
fn braces_in_strings_are_not_nesting() {
    assert!(!is_deeper_than(br#"{"a": "[[[[{{\"[[", "b": [1]}"#, 2));
    assert!(is_deeper_than(br#"{"a": [[1]]}"#, 2));
    assert!(is_deeper_than(&vec![b'['; 1_000_000], 100));
}
