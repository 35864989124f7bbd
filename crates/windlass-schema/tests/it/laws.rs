use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_schema::{
    Catalog, Schema, check_structural, decode_error, decode_protobuf, default, prune, strategic_merge,
    validate, validate_status, validate_update,
};

use crate::values::{object, schema, value, wild_schema};

fn built_in() -> impl Strategy<Value = Schema> {
    let kinds = vec![
        ("", "v1", "Pod"),
        ("apps", "v1", "Deployment"),
        ("", "v1", "Service"),
        ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"),
        ("rbac.authorization.k8s.io", "v1", "Role"),
    ];
    proptest::sample::select(kinds).prop_map(|(group, version, kind)| {
        Catalog::builtin().schema(group, version, kind).expect("the kind is built in")
    })
}

fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, value)| !value.is_null());
            kept.map(|(name, value)| (name, without_nulls(value))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.into_iter().filter(|item| !item.is_null()).map(without_nulls).collect(),
        other => other,
    }
}

proptest! {
    #[test]
    fn defaulting_twice_is_defaulting_once(schema in schema(), mut object in object()) {
        // A server rejects a schema with a null inside a default, unless the field is nullable.
        let schema = Schema::compile(&without_nulls(schema));
        default(&schema, &mut object);
        let once = object.clone();
        default(&schema, &mut object);
        prop_assert_eq!(object, once);
    }

    #[test]
    fn defaulting_built_in_objects_twice_is_once(schema in built_in(), mut object in object()) {
        default(&schema, &mut object);
        let once = object.clone();
        default(&schema, &mut object);
        prop_assert_eq!(object, once);
    }

    #[test]
    fn pruning_twice_is_pruning_once(schema in schema(), mut object in object()) {
        let schema = Schema::compile(&schema);
        prune(&schema, &mut object);
        let once = object.clone();
        prop_assert_eq!(prune(&schema, &mut object), Vec::<String>::new());
        prop_assert_eq!(object, once);
    }

    #[test]
    fn an_unconstrained_schema_keeps_everything_but_odd_metadata(mut object in object()) {
        object["metadata"] = json!({"name": "a"});
        let before = object.clone();
        prop_assert_eq!(prune(&Schema::unconstrained(), &mut object), Vec::<String>::new());
        prop_assert_eq!(object, before);
    }

    #[test]
    fn an_update_that_changes_nothing_is_never_refused_for_its_values(schema in schema(), object in object()) {
        let schema = Schema::compile(&schema);
        let refused = validate_update(&schema, &object, &object);
        let of_lists = |text: &str| text.contains("Duplicate") || text.contains("must be an object");
        let of_embedded = |field: &str| field.ends_with("apiVersion") || field.ends_with("kind");
        for error in refused {
            let text = error.to_string();
            prop_assert!(of_lists(&text) || of_embedded(&error.field), "{}", text);
        }
    }

    #[test]
    fn no_schema_and_no_object_panics(schema in wild_schema(), object in value(), old in value()) {
        check_structural(&schema, "spec.validation.openAPIV3Schema");
        let schema = Schema::compile(&schema);
        validate(&schema, &object);
        validate_update(&schema, &object, &old);
        validate_status(&schema, &object, &old);
        let mut object = object;
        default(&schema, &mut object);
        prune(&schema, &mut object);
    }

    #[test]
    fn every_object_decodes_or_has_an_error(schema in built_in(), object in object()) {
        decode_error(&schema, "Kind", &object);
    }

    #[test]
    fn a_patch_applied_twice_is_applied_once(schema in built_in(), original in object(), patch in object()) {
        // A null in a replaced list is a value in the first run and has no effect in the second run.
        let patch = without_nulls(patch);
        if let Ok(once) = strategic_merge(&schema, original, patch.clone()) {
            prop_assert_eq!(strategic_merge(&schema, once.clone(), patch), Ok(once));
        }
    }

    #[test]
    fn bytes_decode_or_not_but_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_protobuf(&Catalog::builtin(), &bytes);
        let _ = decode_protobuf(&Catalog::builtin(), &[b"k8s\0".as_slice(), &bytes].concat());
    }
}

#[test]
fn deep_schemas_and_objects_do_not_end_the_process() {
    let mut schema = json!({"type": "string"});
    let mut object = json!("x");
    for _ in 0..300 {
        schema = json!({"type": "object", "properties": {"a": schema}});
        object = json!({"a": object});
    }
    let errors = check_structural(&schema, "p");
    assert!(errors[0].to_string().contains("nested deeper"), "{}", errors[0]);
    let schema = Schema::compile(&schema);
    default(&schema, &mut object);
    assert!(validate(&schema, &object).is_empty());
}
