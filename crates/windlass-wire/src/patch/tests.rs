use proptest::prelude::*;
use serde_json::{Value, json};

use super::measure::{Allowance, count};
use super::{JsonPatch, JsonPatchError, Limits, merge_patch};

fn patched(document: Value, operations: Value) -> Result<Value, JsonPatchError> {
    JsonPatch::read(operations, true).unwrap().apply(document, &Limits::default())
}

/// Returns a value that nests `depth` levels deep.
fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, _| json!({ "a": inner }))
}

#[test]
fn indexes_count_from_both_ends() {
    let list = || json!({"a": [1, 2, 3]});
    let add = |path: &str| patched(list(), json!([{"op": "add", "path": path, "value": 9}]));
    assert_eq!(add("/a/0"), Ok(json!({"a": [9, 1, 2, 3]})));
    assert_eq!(add("/a/3"), Ok(json!({"a": [1, 2, 3, 9]})));
    assert_eq!(add("/a/-"), Ok(json!({"a": [1, 2, 3, 9]})));
    assert_eq!(add("/a/-1"), Ok(json!({"a": [1, 2, 3, 9]})));
    assert_eq!(add("/a/-2"), Ok(json!({"a": [1, 2, 9, 3]})));
    assert_eq!(add("/a/+1"), Ok(json!({"a": [1, 9, 2, 3]})));
    for path in ["/a/4", "/a/-5", "/a/x", "/a/", "/a/99999999999999999999", "/b/0"] {
        assert!(add(path).is_err(), "{path}");
    }
    let remove = |path: &str| patched(list(), json!([{"op": "remove", "path": path}]));
    assert_eq!(remove("/a/-1"), Ok(json!({"a": [1, 2]})));
    assert!(remove("/a/3").is_err());
    assert!(remove("/a/-").is_err());
    let replace = |path: &str| patched(list(), json!([{"op": "replace", "path": path, "value": 9}]));
    assert_eq!(replace("/a/-3"), Ok(json!({"a": [9, 2, 3]})));
    assert!(replace("/a/3").is_err());
    assert!(replace("/a/-").is_err());
}

#[test]
fn keys_are_unescaped_once() {
    let operations = json!([
        {"op": "add", "path": "/a~1b", "value": 1},
        {"op": "add", "path": "/~01", "value": 2},
        {"op": "add", "path": "/~", "value": 3},
        {"op": "add", "path": "ignored/c", "value": 4},
        {"op": "add", "path": "/", "value": 5},
    ]);
    assert_eq!(patched(json!({}), operations), Ok(json!({"a/b": 1, "~1": 2, "~": 3, "c": 4, "": 5})));
}

#[test]
fn a_missing_member_is_null_where_it_is_only_read() {
    let document = || json!({"a": {"b": 1}, "n": null});
    assert_eq!(patched(document(), json!([{"op": "test", "path": "/a/x", "value": null}])), Ok(document()));
    assert_eq!(patched(document(), json!([{"op": "test", "path": "/n"}])), Ok(document()));
    assert!(patched(document(), json!([{"op": "test", "path": "/a/b"}])).is_err());
    let copied = patched(document(), json!([{"op": "copy", "from": "/x", "path": "/a"}]));
    assert_eq!(copied, Ok(json!({"a": null, "n": null})));
    let added = patched(document(), json!([{"op": "add", "path": "/a"}]));
    assert_eq!(added, Ok(json!({"a": null, "n": null})));
    let replaced = patched(json!({}), json!([{"op": "replace", "path": "/a", "value": 1}]));
    assert_eq!(replaced, Ok(json!({"a": 1})));
    assert!(patched(document(), json!([{"op": "move", "from": "/x", "path": "/a"}])).is_err());
    assert!(patched(document(), json!([{"op": "add", "path": "/n/x", "value": 1}])).is_err());
}

#[test]
fn the_root_can_be_tested_and_replaced() {
    let document = || json!({"a": 1});
    assert_eq!(patched(document(), json!([{"op": "test", "path": "", "value": {"a": 1}}])), Ok(document()));
    assert_eq!(patched(document(), json!([{"op": "replace", "path": "", "value": [1]}])), Ok(json!([1])));
    for operation in [
        json!({"op": "replace", "path": "", "value": 1}),
        json!({"op": "replace", "path": ""}),
        json!({"op": "add", "path": "", "value": {}}),
        json!({"op": "remove", "path": ""}),
        json!({"op": "copy", "from": "", "path": "/b"}),
        json!({"op": "move", "from": "", "path": "/b"}),
        json!({"op": "test", "path": "", "value": {}}),
    ] {
        assert!(patched(document(), json!([operation])).is_err(), "{operation}");
    }
}

#[test]
fn what_is_no_patch_is_named_as_go_names_it() {
    let error = |patch: Value, typed| JsonPatch::read(patch, typed).unwrap_err();
    assert_eq!(
        error(json!({}), true),
        "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
    );
    assert_eq!(
        error(json!({}), false),
        "json: cannot unmarshal object into Go value of type jsonpatch.Patch"
    );
    assert_eq!(
        error(json!(["x"]), true),
        "json: cannot unmarshal string into Go value of type handlers.jsonPatchOp"
    );
    assert_eq!(
        error(json!(["x"]), false),
        "json: cannot unmarshal string into Go value of type jsonpatch.Operation"
    );
    assert_eq!(
        error(json!([{"op": "add", "path": 5}]), true),
        "json: cannot unmarshal number into Go struct field jsonPatchOp.path of type string"
    );
    for broken in [json!([{"op": "add", "path": 5}]), json!([null]), json!([{"op": "dance", "path": "/a"}])] {
        let patch = JsonPatch::read(broken.clone(), false).unwrap();
        assert!(patch.apply(json!({}), &Limits::default()).is_err(), "{broken}");
    }
    assert!(JsonPatch::read(json!(null), true).unwrap().is_empty());
}

#[test]
fn copies_are_limited_together() {
    let limits = Limits { copied_bytes: 30, ..Limits::default() };
    let copy = |times| {
        let operations = vec![json!({"op": "copy", "from": "/a", "path": "/b"}); times];
        let document = json!({"a": {"k": "1234"}});
        JsonPatch::read(operations.into(), true).unwrap().apply(document, &limits)
    };
    // 12 bytes each.
    assert!(copy(2).is_ok());
    assert_eq!(copy(3), Err(JsonPatchError::CopiesTooMuch(30)));
}

#[test]
fn a_document_copied_into_itself_ends_at_the_limit() {
    let operations = vec![json!({"op": "copy", "from": "/a", "path": "/a/-"}); 64];
    let document = json!({"a": ["x".repeat(1024)]});
    assert_eq!(
        patched(document, operations.into()),
        Err(JsonPatchError::CopiesTooMuch(Limits::default().copied_bytes))
    );
}

#[test]
fn no_operation_makes_a_document_too_deep() {
    let limit = Limits::default().depth;
    let deepest = || nested(limit);
    let add =
        |path: &str, depth| patched(json!({}), json!([{"op": "add", "path": path, "value": nested(depth)}]));
    assert!(add("/x", limit - 1).is_ok());
    assert_eq!(add("/x", limit), Err(JsonPatchError::TooDeep(limit)));
    let deep_path = |length: usize| "/a".repeat(length);
    let too_deep = Err(JsonPatchError::TooDeep(limit));
    let add = json!([{"op": "add", "path": deep_path(limit), "value": {}}]);
    assert_eq!(patched(deepest(), add), too_deep);
    let replace = json!([{"op": "replace", "path": deep_path(limit), "value": [1]}]);
    assert_eq!(patched(deepest(), replace), too_deep);
    let replace = json!([{"op": "replace", "path": "", "value": nested(limit + 1)}]);
    assert_eq!(patched(deepest(), replace), too_deep);
    let document = || json!({"a": nested(limit - 1), "b": {"c": {}}, "d": [[[]]]});
    let moved = json!([{"op": "move", "from": "/a", "path": "/b/c"}]);
    assert_eq!(patched(document(), moved), too_deep);
    let copied = json!([{"op": "copy", "from": "/a", "path": "/b/c"}]);
    assert_eq!(patched(document(), copied), too_deep);
    let beside =
        json!([{"op": "move", "from": "/a", "path": "/e"}, {"op": "copy", "from": "/e", "path": "/f"}]);
    assert!(patched(document(), beside).is_ok());
}

#[test]
fn shifting_a_long_array_again_and_again_is_refused() {
    let document = || json!({"a": vec![0; 10_000]});
    let front = |times| Value::from(vec![json!({"op": "add", "path": "/a/0", "value": 1}); times]);
    assert!(patched(document(), front(1_000)).is_ok());
    assert!(matches!(patched(document(), front(10_000)), Err(JsonPatchError::TooMuchWork(_))));
    let back = Value::from(vec![json!({"op": "add", "path": "/a/-", "value": 1}); 10_000]);
    assert!(patched(document(), back).is_ok());
    let down_and_up = [
        json!({"op": "move", "from": "/a", "path": "/b/a"}),
        json!({"op": "move", "from": "/b/a", "path": "/a"}),
    ];
    let moves = Value::from((0..10_000).map(|n| down_and_up[n % 2].clone()).collect::<Vec<_>>());
    let document = json!({"a": vec![0; 10_000], "b": {}});
    assert!(matches!(patched(document, moves), Err(JsonPatchError::TooMuchWork(_))));
}

#[test]
fn sizes_are_those_of_the_json_that_go_writes() {
    for value in [
        json!(null),
        json!("a\"<\n\u{1}é"),
        json!([1, -2.5, true, false, {}, []]),
        json!({"a": {"<": 1}, "b": "x"}),
    ] {
        let size = windlass_schema::go_json(&value).len();
        let mut left = Allowance { bytes: size };
        assert_eq!((left.take(&value, 3), left.bytes), (Some(()), 0), "{value}");
        assert_eq!(Allowance { bytes: size - 1 }.take(&value, 3), None, "{value}");
    }
}

#[test]
fn a_merge_patch_drops_nulls_in_new_lists() {
    let mut object = json!({"a": 1, "o": {"k": 1}});
    merge_patch(&mut object, &json!({"a": [{"x": null, "y": 1}, null], "b": {"c": null}, "o": {"k": null}}));
    assert_eq!(object, json!({"a": [{"y": 1}, null], "b": {}, "o": {}}));
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "[xy]{0,2}".prop_map(Value::from)
    ];
    leaf.prop_recursive(3, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[abc]", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[abc]", document(), 0..3)
        .prop_map(|members| Value::Object(members.into_iter().collect()))
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof!["[abc]", "[012]", Just("-".to_owned())], 1..4)
        .prop_map(|keys| format!("/{}", keys.join("/")))
}

fn operation() -> impl Strategy<Value = Value> {
    prop_oneof![
        (path(), document()).prop_map(|(path, value)| json!({"op": "add", "path": path, "value": value})),
        path().prop_map(|path| json!({"op": "remove", "path": path})),
        (path(), document()).prop_map(|(path, value)| json!({"op": "replace", "path": path, "value": value})),
        (path(), path()).prop_map(|(from, path)| json!({"op": "move", "from": from, "path": path})),
        (path(), path()).prop_map(|(from, path)| json!({"op": "copy", "from": from, "path": path})),
        (path(), document()).prop_map(|(path, value)| json!({"op": "test", "path": path, "value": value})),
    ]
}

/// Returns whether the operation does more here than RFC 6902 allows: reads or replaces a missing member, or
/// moves a value into the value itself.
fn is_extension(document: &Value, operation: &Value) -> bool {
    let text = |name: &str| operation[name].as_str().unwrap_or_default();
    let missing = |path: &str| document.pointer(path).is_none();
    match text("op") {
        "replace" | "test" => missing(text("path")),
        "copy" => missing(text("from")),
        "move" => text("path").starts_with(&format!("{}/", text("from"))),
        _ => false,
    }
}

proptest! {
    #[test]
    fn json_patches_give_what_the_standard_says(document in object(), operations in prop::collection::vec(operation(), 0..6)) {
        let mut theirs = document.clone();
        let mut ours = document;
        for operation in operations {
            let extension = is_extension(&ours, &operation);
            let patch: json_patch::Patch = serde_json::from_value(json!([operation])).unwrap();
            let refused = json_patch::patch(&mut theirs, &patch).is_err();
            match patched(ours.clone(), json!([operation])) {
                Ok(value) if extension => (theirs, ours) = (value.clone(), value),
                Ok(value) => {
                    prop_assert!(!refused, "{operation} of {ours} should be refused");
                    ours = value;
                }
                Err(error) => {
                    prop_assert!(refused, "{operation} of {ours}: {error}");
                    // The other implementation may leave a part of the operation behind.
                    theirs = ours.clone();
                }
            }
            prop_assert_eq!(&ours, &theirs);
        }
    }

    #[test]
    fn merge_patches_give_what_the_standard_says(document in object(), patch in object()) {
        // A null in a list is the only difference.
        prop_assume!(!patch.to_string().contains('['));
        let (mut ours, mut theirs) = (document.clone(), document);
        merge_patch(&mut ours, &patch);
        json_patch::merge(&mut theirs, &patch);
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn results_keep_the_limits(document in object(), operations in prop::collection::vec(operation(), 0..12)) {
        let limits = Limits { depth: 5, copied_bytes: 40, work: 20 };
        let size = |value: &Value| windlass_schema::go_json(value).len();
        let bound = size(&document) + size(&Value::from(operations.clone())) + limits.copied_bytes;
        if let Ok(result) = JsonPatch::read(operations.into(), true).unwrap().apply(document.clone(), &limits) {
            prop_assert!(count(&document, 5).is_none() || count(&result, 5).is_some(), "too deep: {result}");
            prop_assert!(size(&result) <= bound, "too large: {result}");
        }
    }
}
