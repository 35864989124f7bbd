use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::breaking_changes;

fn crd(schema: &Value) -> Value {
    json!({
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "bars.example.com" },
        "spec": {
            "scope": "Namespaced",
            "names": { "kind": "Bar", "plural": "bars", "shortNames": ["b"] },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": { "status": {} },
                "selectableFields": [{ "jsonPath": ".spec.size" }],
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "f": schema } } },
            }],
        },
    })
}

fn shown(old: &Value, new: &Value) -> String {
    let changes = breaking_changes(std::slice::from_ref(old), std::slice::from_ref(new));
    changes
        .iter()
        .map(|change| change.to_string().replace("bars.example.com v1 ", ""))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the changes from a schema of the field `f` to another schema, and back.
fn field(old: Value, new: Value) -> (String, String) {
    (shown(&crd(&old), &crd(&new)), shown(&crd(&new), &crd(&old)))
}

fn check((changes, back): (String, String), wanted: Expect, wanted_back: Expect) {
    wanted.assert_eq(&changes);
    wanted_back.assert_eq(&back);
}

#[test]
fn a_default_may_lose_nulls_of_absent_fields() {
    let with = |default: Value| json!({ "type": "object", "properties": { "a": { "nullable": true } }, "default": default });
    check(field(with(json!({ "a": null })), with(json!({}))), expect![""], expect![""]);
}

#[test]
fn bounds_may_widen_only() {
    check(
        field(
            json!({ "type": "integer", "minimum": 1, "maximum": 10 }),
            json!({ "type": "integer", "minimum": 2, "maximum": 9 }),
        ),
        expect![[r"
            .f: maximum was 10 and is 9
            .f: minimum was 1 and is 2"]],
        expect![""],
    );
    check(
        field(
            json!({ "type": "string" }),
            json!({ "type": "string", "maxLength": 3, "pattern": "a", "minLength": 0 }),
        ),
        expect![[r"
            .f: maxLength 3 is new
            .f: pattern a is new"]],
        expect![""],
    );
    check(
        field(json!({ "type": "integer" }), json!({ "type": "integer", "multipleOf": 4 })),
        expect![".f: multipleOf 4 is new"],
        expect![""],
    );
    check(
        field(
            json!({ "multipleOf": 4, "maximum": 1 }),
            json!({ "multipleOf": 2, "maximum": 1, "exclusiveMaximum": true }),
        ),
        expect![".f: exclusiveMaximum true is new"],
        expect![".f: multipleOf was 2 and is 4"],
    );
}

#[test]
fn values_and_types_may_not_be_lost() {
    check(
        field(
            json!({ "type": "string", "enum": ["a", "b"] }),
            json!({ "type": "string", "enum": ["a", "c"] }),
        ),
        expect![".f: the value b is not allowed any more"],
        expect![".f: the value c is not allowed any more"],
    );
    check(
        field(
            json!({ "type": "string", "enum": ["a", null], "nullable": true }),
            json!({ "type": "string", "enum": ["a"] }),
        ),
        expect![""],
        expect![""],
    );
    check(
        field(json!({ "type": "integer" }), json!({ "type": "number" })),
        expect![""],
        expect![".f: the type was number and is integer"],
    );
    check(
        field(json!({ "type": "string" }), json!({ "x-kubernetes-int-or-string": true })),
        expect![""],
        expect![".f: integers and strings are not both allowed any more"],
    );
    check(
        field(
            json!({ "type": "object", "nullable": true }),
            json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }),
        ),
        expect![".f: null is not allowed any more"],
        expect![".f: unknown fields are dropped"],
    );
    check(
        field(json!({ "type": "integer", "default": 1 }), json!({ "type": "integer", "default": 2 })),
        expect![".f: default was 1 and is 2"],
        expect![".f: default was 2 and is 1"],
    );
}

#[test]
fn fields_may_be_added_but_not_required_or_removed() {
    let object = |properties: Value, required: Value| json!({ "type": "object", "properties": properties, "required": required });
    check(
        field(
            object(json!({ "a": {} }), json!([])),
            object(json!({ "b": {}, "c": { "default": 1 } }), json!(["b", "c"])),
        ),
        expect![[r"
            .f.a: the field is gone
            .f.b: the field is required now, and has no default"]],
        expect![[r"
            .f.b: the field is gone
            .f.c: the field is gone"]],
    );
    check(
        field(
            json!({ "type": "object", "additionalProperties": { "maximum": 2 } }),
            json!({ "type": "object", "additionalProperties": { "maximum": 1 } }),
        ),
        expect![".f[*]: maximum was 2 and is 1"],
        expect![""],
    );
    check(
        field(json!({ "type": "object", "additionalProperties": {} }), json!({ "type": "object" })),
        expect![".f: other keys are dropped"],
        expect![""],
    );
}

#[test]
fn lists_and_rules_keep_their_meaning() {
    let list =
        |kind: &str, items: Value| json!({ "type": "array", "x-kubernetes-list-type": kind, "items": items });
    check(
        field(list("atomic", json!({ "type": "string" })), list("set", json!({ "type": "integer" }))),
        expect![[r"
            .f: the list type was atomic and is set
            .f[]: the type was string and is integer"]],
        expect![[r"
            .f: the list type was set and is atomic
            .f[]: the type was integer and is string"]],
    );
    check(
        field(json!({}), json!({ "x-kubernetes-validations": [{ "rule": "self > 1" }], "oneOf": [{}] })),
        expect![[r"
            .f: oneOf changed, which may refuse more
            .f: the rule `self > 1` is new"]],
        expect![""],
    );
}

#[test]
fn versions_names_and_subresources_stay() {
    let old = crd(&json!({}));
    let mut new = old.clone();
    new["spec"]["scope"] = json!("Cluster");
    new["spec"]["names"]["shortNames"] = json!([]);
    let version = &mut new["spec"]["versions"][0];
    version["served"] = json!(false);
    version["subresources"] = json!({});
    version["selectableFields"] = json!([]);
    expect![[r"
        bars.example.com: the scope was Namespaced and is Cluster
        bars.example.com: the short name b is gone
        bars.example.com v1: the field selector .spec.size is gone
        bars.example.com v1: the subresource status is gone
        bars.example.com v1: the version is not served any more"]]
    .assert_eq(&shown(&old, &new));
    new["spec"]["versions"] = json!([]);
    expect![[r"
        bars.example.com: the scope was Namespaced and is Cluster
        bars.example.com: the short name b is gone
        bars.example.com v1: the version is gone, and objects are stored in it: migrate them, and drop it from status.storedVersions, before"]].assert_eq(&shown(&old, &new));
    let mut retired = old.clone();
    retired["spec"]["versions"][0]["storage"] = json!(false);
    expect![[r"
        bars.example.com: the scope was Namespaced and is Cluster
        bars.example.com: the short name b is gone
        bars.example.com v1: the version is gone, and clients may use it: stop to serve it in a release before"]].assert_eq(&shown(&retired, &new));
    retired["spec"]["versions"][0]["served"] = json!(false);
    assert_eq!(breaking_changes(&[retired], &[new]).len(), 2, "the names only");
    assert_eq!(breaking_changes(&[old], &[])[0].to_string(), "bars.example.com: the kind is gone");
}
