//! The effects of a definition's schema on objects: defaults, pruning, validation.

use std::fmt::Write as _;

use expect_test::expect;
use serde_json::{Value, json};

use crate::fixtures::{group, widget, widgets, widgets_path};
use crate::harness::{Api, JSON_PATCH, MERGE_PATCH, Reply};

/// Serves widgets whose `spec` has the given schema, and says where.
async fn with_spec(api: &Api, spec: Value) -> String {
    let ns = api.namespace().await;
    let mut definition = widgets(api);
    definition["spec"]["versions"][0]["schema"] =
        json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    api.crd(definition).await;
    format!("/apis/{}/v1/namespaces/{ns}/widgets", group(api))
}

async fn create(api: &Api, path: &str, spec: Value) -> Reply {
    let mut body = widget(api, "a");
    body["spec"] = spec;
    api.post(path, body).await
}

#[tokio::test]
async fn defaults_are_filled_in() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let created = api.post(&path, widget(&api, "a")).await.is(201);
    assert_eq!(created.at("/spec"), json!({"size": 3, "replicas": 1, "colour": "red"}));
    let mut body = widget(&api, "b");
    body["spec"]["replicas"] = json!(null);
    body["spec"]["colour"] = json!("green");
    let created = api.post(&path, body).await.is(201);
    assert_eq!(
        created.at("/spec"),
        json!({"size": 3, "replicas": 1, "colour": "green"}),
        "null asks for the default"
    );
}

#[tokio::test]
async fn defaults_go_deep() {
    let api = Api::start();
    let spec = json!({
        "type": "object",
        "default": {},
        "properties": {
            "inner": {"type": "object", "default": {"a": 1}, "properties": {"a": {"type": "integer"}, "b": {"type": "string", "default": "x"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "boolean", "default": true}}}},
            "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"d": {"type": "number", "default": 1.5}}}},
            "maybe": {"type": "string", "nullable": true, "default": "set"}
        }
    });
    let path = with_spec(&api, spec).await;
    let mut body = widget(&api, "none");
    body.as_object_mut().unwrap().remove("spec");
    let created = api.post(&path, body).await.is(201);
    assert_eq!(created.at("/spec"), json!({"inner": {"a": 1, "b": "x"}, "maybe": "set"}));
    let created = create(&api, &path, json!({"list": [{}, {"c": false}], "map": {"k": {}}, "maybe": null}))
        .await
        .is(201);
    assert_eq!(
        created.at("/spec"),
        json!({
            "inner": {"a": 1, "b": "x"}, "list": [{"c": true}, {"c": false}], "map": {"k": {"d": 1.5}}, "maybe": null
        })
    );
}

#[tokio::test]
async fn unknown_fields_are_pruned() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let mut body = widget(&api, "a");
    body["spec"]["bogus"] = json!({"x": 1});
    body["extra"] = json!(1);
    let created = api.post(&path, body).await.is(201);
    assert_eq!(created.at("/spec/bogus"), Value::Null);
    assert_eq!(created.at("/extra"), Value::Null);
}

#[tokio::test]
async fn unknown_fields_are_kept_where_the_schema_says_so() {
    let api = Api::start();
    let spec = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "properties": {"strict": {"type": "object", "properties": {"a": {"type": "string"}}}}
    });
    let path = with_spec(&api, spec).await;
    let created = create(&api, &path, json!({"free": {"x": [1, null]}, "strict": {"a": "v", "b": "gone"}}))
        .await
        .is(201);
    assert_eq!(created.at("/spec"), json!({"free": {"x": [1, null]}, "strict": {"a": "v"}}));
}

#[tokio::test]
async fn an_embedded_resource_keeps_what_makes_it_one() {
    let api = Api::start();
    let spec = json!({"type": "object", "properties": {
        "template": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object", "properties": {"a": {"type": "string"}}}}}
    }});
    let path = with_spec(&api, spec).await;
    let template = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "bogus": 1}, "spec": {"a": "v", "b": "gone"}, "other": 1});
    let created = create(&api, &path, json!({"template": template})).await.is(201);
    assert_eq!(
        created.at("/spec/template"),
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"a": "v"}})
    );
    create(&api, &path, json!({"template": {"metadata": {"name": "BAD NAME"}}})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueRequired spec.template.apiVersion: Required value
        - FieldValueRequired spec.template.kind: Required value"#]]);
}

#[tokio::test]
async fn values_of_the_wrong_type_are_refused() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    create(&api, &path, json!({"size": "big"})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueTypeInvalid spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#]]);
    create(&api, &path, json!({"size": 1.5})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.size
        - FieldValueTypeInvalid spec.size: Invalid value: "number": spec.size in body must be of type integer: "number""#]]);
    create(&api, &path, json!({"size": 3, "tags": "x"})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.tags: Invalid value: "string": spec.tags in body must be of type array: "string"
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueTypeInvalid spec.tags: Invalid value: "string": spec.tags in body must be of type array: "string""#]]);
    create(&api, &path, json!({"size": 3, "tags": [1, null]})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueTypeInvalid spec.tags[0]: Invalid value: "integer": spec.tags[0] in body must be of type string: "integer"
        - FieldValueTypeInvalid spec.tags[1]: Invalid value: "null": spec.tags[1] in body must be of type string: "null""#]]);
    create(&api, &path, json!({"size": 3, "colour": true})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueNotSupported spec.colour: Unsupported value: true: supported values: "red", "green"
        - FieldValueTypeInvalid spec.colour: Invalid value: "boolean": spec.colour in body must be of type string: "boolean""#]]);
    create(&api, &path, json!([])).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid .spec.replicas: Invalid value: 0: .spec.replicas accessor error: [] is of the type []interface {}, expected map[string]interface{}
        - FieldValueTypeInvalid spec: Invalid value: "array": spec in body must be of type object: "array""#]]);
    create(&api, &path, json!("text")).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid .spec.replicas: Invalid value: 0: .spec.replicas accessor error: text is of the type string, expected map[string]interface{}
        - FieldValueTypeInvalid spec: Invalid value: "string": spec in body must be of type object: "string""#]]);
    create(&api, &path, json!(null)).await.shows(expect![[r#"
        201
        {
          "apiVersion": "ID.example.com/v1",
          "kind": "Widget",
          "metadata": {
            "creationTimestamp": "TIME",
            "generation": 1,
            "name": "a",
            "namespace": "ns-ID",
            "resourceVersion": "RV",
            "uid": "UID"
          }
        }"#]]);
}

#[tokio::test]
async fn values_out_of_bounds_are_refused() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    create(&api, &path, json!({})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.size: Required value
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueRequired spec.size: Required value"#]]);
    create(&api, &path, json!({"size": 0})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"#]]);
    create(&api, &path, json!({"size": 11, "colour": "blue"})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid spec.size: Invalid value: 11: spec.size in body should be less than or equal to 10
        - FieldValueNotSupported spec.colour: Unsupported value: "blue": supported values: "red", "green""#]]);
    create(&api, &path, json!({"size": 1, "tags": ["a", "b", "c", "toolong"]})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueTooLong spec.tags[3]: Too long: may not be more than 5 bytes
        - FieldValueTooMany spec.tags: Too many: 4: must have at most 3 items"#]]);
}

#[tokio::test]
async fn every_keyword_has_its_text() {
    let api = Api::start();
    let text = |schema: Value| {
        let mut schema = schema;
        schema["type"] = json!("string");
        schema
    };
    let spec = json!({"type": "object", "properties": {
        "short": text(json!({"minLength": 3})), "pattern": text(json!({"pattern": "^a+$"})),
        "date": text(json!({"format": "date-time"})), "ipv4": text(json!({"format": "ipv4"})),
        "above": {"type": "integer", "minimum": 5, "exclusiveMinimum": true},
        "below": {"type": "number", "maximum": 5, "exclusiveMaximum": true},
        "step": {"type": "integer", "multipleOf": 5},
        "int32": {"type": "integer", "format": "int32"},
        "few": {"type": "array", "minItems": 2, "items": {"type": "string"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "keyed": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "string"}}}},
        "map": {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": {"type": "string"}},
        "either": {"x-kubernetes-int-or-string": true},
        "one": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "any": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        "all": {"type": "integer", "allOf": [{"minimum": 3}, {"maximum": 4}]},
        "not": {"type": "string", "not": {"pattern": "^x"}},
        "flag": {"type": "boolean"},
        "nothing": {"type": "string", "nullable": true}
    }});
    let path = with_spec(&api, spec).await;
    create(&api, &path, json!({"short": "ab"})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.short: Invalid value: "ab": spec.short in body should be at least 3 chars long
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid spec.short: Invalid value: "ab": spec.short in body should be at least 3 chars long"#]]);
    create(&api, &path, json!({"pattern": "b"})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.pattern: Invalid value: "b": spec.pattern in body should match '^a+$'
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid spec.pattern: Invalid value: "b": spec.pattern in body should match '^a+$'"#]]);
    create(&api, &path, json!({"date": "yesterday"})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.date: Invalid value: "yesterday": spec.date in body must be of type date-time: "yesterday"
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueTypeInvalid spec.date: Invalid value: "yesterday": spec.date in body must be of type date-time: "yesterday""#]]);
    create(&api, &path, json!({"ipv4": "1.2.3"})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.ipv4: Invalid value: "1.2.3": spec.ipv4 in body must be of type ipv4: "1.2.3"
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueTypeInvalid spec.ipv4: Invalid value: "1.2.3": spec.ipv4 in body must be of type ipv4: "1.2.3""#]]);
    create(&api, &path, json!({"above": 5})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.above: Invalid value: 5: spec.above in body should be greater than 5
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid spec.above: Invalid value: 5: spec.above in body should be greater than 5"#]]);
    create(&api, &path, json!({"below": 5})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.below: Invalid value: 5: spec.below in body should be less than 5
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid spec.below: Invalid value: 5: spec.below in body should be less than 5"#]]);
    create(&api, &path, json!({"step": 7})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.step: Invalid value: 7: spec.step in body should be a multiple of 5
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid spec.step: Invalid value: 7: spec.step in body should be a multiple of 5"#]]);
    create(&api, &path, json!({"int32": 3_000_000_000_u64})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.int32
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.int32"#]]);
    create(&api, &path, json!({"few": ["a"]})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.few: Invalid value: 1: spec.few in body should have at least 2 items
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid spec.few: Invalid value: 1: spec.few in body should have at least 2 items"#]]);
    create(&api, &path, json!({"set": ["a", "b", "a"]})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.set[2]: Duplicate value: "a"
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueDuplicate spec.set[2]: Duplicate value: "a""#]]);
    create(&api, &path, json!({"keyed": [{"k": "a"}, {"k": "a", "v": "2"}]})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.keyed[1]: Duplicate value: {"k":"a"}
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueDuplicate spec.keyed[1]: Duplicate value: {"k":"a"}"#]]);
    create(&api, &path, json!({"keyed": [{"v": "2"}]})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.keyed[0].k: Required value
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueRequired spec.keyed[0].k: Required value"#]]);
    create(&api, &path, json!({"map": {}})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.map: Invalid value: 0: spec.map in body should have at least 1 properties
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid spec.map: Invalid value: 0: spec.map in body should have at least 1 properties"#]]);
    create(&api, &path, json!({"map": {"a": "1", "b": "2"}})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.map: Too many: 2: must have at most 1 item
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueTooMany spec.map: Too many: 2: must have at most 1 item"#]]);
    create(&api, &path, json!({"map": {"a": 1}})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.map.a: Invalid value: "integer": spec.map.a in body must be of type string: "integer"
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueTypeInvalid spec.map.a: Invalid value: "integer": spec.map.a in body must be of type string: "integer""#]]);
    create(&api, &path, json!({"either": true})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.either: Invalid value: "boolean": spec.either in body must be of type integer,string: "boolean"
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueTypeInvalid spec.either: Invalid value: "boolean": spec.either in body must be of type integer,string: "boolean""#]]);
    create(&api, &path, json!({"one": {}})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid <nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found none valid
        - FieldValueRequired spec.one.a: Required value"#]]);
    create(&api, &path, json!({"one": {"a": "1", "b": "2"}})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: <nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found 2 valid alternatives
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid <nil>: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found 2 valid alternatives"#]]);
    create(&api, &path, json!({"any": {}})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid <nil>: Invalid value: "": "spec.any" must validate at least one schema (anyOf)
        - FieldValueRequired spec.any.a: Required value"#]]);
    create(&api, &path, json!({"all": 5})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: [as below]
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid <nil>: Invalid value: "": "spec.all" must validate all the schemas (allOf)
        - FieldValueInvalid spec.all: Invalid value: 5: spec.all in body should be less than or equal to 4"#]]);
    create(&api, &path, json!({"not": "xy"})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: <nil>: Invalid value: "": "spec.not" must not validate the schema (not)
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueInvalid <nil>: Invalid value: "": "spec.not" must not validate the schema (not)"#]]);
    create(&api, &path, json!({"flag": "true"})).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "a" is invalid: spec.flag: Invalid value: "string": spec.flag in body must be of type boolean: "string"
        group="ID.example.com" kind="Widget" name="a"
        - FieldValueTypeInvalid spec.flag: Invalid value: "string": spec.flag in body must be of type boolean: "string""#]]);
    let fine = json!({"short": "abc", "either": 5, "nothing": null, "step": 10, "one": {"a": "1"}, "all": 3, "date": "2026-01-02T03:04:05Z", "set": ["a", "b"]});
    create(&api, &path, fine).await.is(201);
}

#[tokio::test]
async fn the_envelope_is_checked() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    let change = |pointer: &str, value: Value| {
        let mut body = widget(&api, "a");
        *body.pointer_mut(pointer).unwrap() = value;
        body
    };
    api.post(&path, change("/kind", json!("Gadget"))).await.shows(expect![[r#"
        422 Invalid: Gadget.ID.example.com "a" is invalid: kind: Invalid value: "Gadget": must be Widget
        group="ID.example.com" kind="Gadget" name="a"
        - FieldValueInvalid kind: Invalid value: "Gadget": must be Widget"#]]);
    api.post(&path, change("/apiVersion", json!("v1"))).await.shows(expect!["400 BadRequest: the API version in the data (v1) does not match the expected API version (ID.example.com/v1)"]);
    api.post(&path, change("/metadata", json!({"name": "a", "labels": {"k": 5}}))).await.shows(expect![[r#"400 BadRequest: Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"#]]);
    api.post(&path, change("/metadata", json!({"name": "a", "labels": "x"}))).await.shows(expect![[r#"400 BadRequest: Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal string into Go struct field ObjectMeta.labels of type map[string]string"#]]);
    api.post(&path, change("/metadata", json!([]))).await.shows(expect![[r#"400 BadRequest: Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal array into Go value of type v1.ObjectMeta"#]]);
    api.post(&path, change("/metadata/name", json!("Bad_Name"))).await.shows(expect![[r#"
        422 Invalid: Widget.ID.example.com "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        group="ID.example.com" kind="Widget" name="Bad_Name"
        - FieldValueInvalid metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"#]]);
    api.post(&path, change("/metadata/name", json!(5))).await.shows(expect![[r#"400 BadRequest: Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"#]]);
    api.post(&path, json!({"spec": {"size": 1}})).await.shows(expect![[r#"400 BadRequest: the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{"spec":{"size":1}}' ({"spec":{"size":1}})"#]]);
    api.post(&path, json!({"kind": "Widget", "metadata": {"name": "a"}, "spec": {"size": 1}}))
        .await
        .shows(expect!["400 BadRequest: the API version in the data () does not match the expected API version (ID.example.com/v1)"]);
}

#[tokio::test]
async fn big_numbers_stay_exact() {
    let api = Api::start();
    let spec = json!({"type": "object", "properties": {"i": {"type": "integer"}, "n": {"type": "number"}}});
    let path = with_spec(&api, spec).await;
    let created = create(&api, &path, json!({"i": 9_007_199_254_740_993_i64, "n": 0.1})).await.is(201);
    assert_eq!(created.at("/spec"), json!({"i": 9_007_199_254_740_993_i64, "n": 0.1}));
    let whole = create(&api, &path, json!({"i": 5.0})).await;
    assert_eq!(whole.code, 409, "a whole float is an integer, and the name is taken: {whole}");
}

#[tokio::test]
async fn a_verb_that_a_subresource_does_not_have() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    api.delete(&format!("{path}/a/status")).await.shows(expect![[r#"
        405 MethodNotAllowed: delete is not supported on resources of kind "widgets.ID.example.com"
        group="ID.example.com" kind="widgets""#]]);
}

/// A definition with two versions. In the first, which is stored, the spec has a shape.
fn two_versions(api: &Api) -> Value {
    let mut definition = widgets(api);
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    let first = &mut definition["spec"]["versions"][0];
    first["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["shape"] = shape();
    definition["spec"]["versions"].as_array_mut().unwrap().push(second);
    definition
}

fn shape() -> Value {
    json!({"type": "string", "default": "round"})
}

#[tokio::test]
async fn an_object_that_is_deleted_through_another_version_keeps_its_defaults() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.crd(two_versions(&api)).await;
    let at = |version: &str| format!("/apis/{}/{version}/namespaces/{ns}/widgets", group(&api));
    let mut held = widget(&api, "a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(&at("v1"), held).await.is(201);
    let path = format!("{}/a", at("v2"));
    assert_eq!(api.delete(&path).await.is(200).at("/spec/shape"), Value::Null);
    assert_eq!(api.get(&path).await.is(200).at("/spec/shape"), Value::Null);
    assert_eq!(api.get(&format!("{}/a", at("v1"))).await.is(200).at("/spec/shape"), "round");
    api.patch(&path, MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
}

#[tokio::test]
async fn an_update_that_changes_nothing_stores_what_a_new_schema_makes_of_an_object() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    let definition =
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{}", group(&api));
    let at = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/shape";
    let patch = json!([{"op": "add", "path": at, "value": shape()}]);
    api.patch(&definition, JSON_PATCH, patch).await.is(200);
    let one = format!("{path}/a");
    let shown = api.eventually(&one, |reply| reply.at("/spec/shape") == "round").await;
    let stored = api.put(&one, shown.json()).await.is(200);
    assert!(stored.version() > shown.version());
    assert_eq!(api.put(&one, stored.json()).await.is(200).version(), stored.version());
}

#[tokio::test]
async fn only_fields_that_the_stored_version_has_are_kept() {
    let api = Api::start();
    let ns = api.namespace().await;
    let version = |name: &str, stored: bool, fields: Value| {
        json!({"name": name, "served": true, "storage": stored, "schema": {"openAPIV3Schema": {"type": "object",
            "properties": {"spec": {"type": "object", "properties": fields}}}}})
    };
    let text = json!({"type": "string"});
    let group = format!("two-{}.example.com", api.id);
    api.crd(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gears.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "Gear", "plural": "gears"}, "versions": [
            version("v1", true, json!({"both": text, "first": text, "old": {"type": "string", "default": "o"}})),
            version("v2", false, json!({"both": text, "second": text, "new": {"type": "string", "default": "n"}})),
        ]},
    }))
    .await;
    let path = |version: &str| format!("/apis/{group}/{version}/namespaces/{ns}/gears");
    let gear = json!({"apiVersion": format!("{group}/v2"), "kind": "Gear", "metadata": {"name": "a"},
        "spec": {"both": "b", "first": "f", "second": "s"}});
    let created = api.post(&path("v2"), gear).await.is(201);
    assert_eq!(created.at("/spec"), json!({"both": "b"}));
    let spec = async |version: &str| api.get(&format!("{}/a", path(version))).await.is(200).at("/spec");
    assert_eq!(spec("v2").await, json!({"both": "b"}));
    assert_eq!(spec("v1").await, json!({"both": "b", "old": "o"}));
    assert_eq!(api.get(&path("v2")).await.is(200).at("/items/0/spec"), json!({"both": "b"}));
    // The default of `new` is a change at each write, because it is not kept.
    let label = json!({"metadata": {"labels": {"a": "b"}}});
    let patched = api.patch(&format!("{}/a", path("v2")), MERGE_PATCH, label).await.is(200);
    assert_eq!((patched.at("/spec"), patched.at("/metadata/generation")), (json!({"both": "b"}), json!(2)));
    let label = json!({"metadata": {"labels": {"a": "c"}}, "spec": {"first": "f"}});
    let patched = api.patch(&format!("{}/a", path("v1")), MERGE_PATCH, label).await.is(200);
    assert_eq!(patched.at("/spec"), json!({"both": "b", "first": "f", "old": "o"}));
    assert_eq!(spec("v2").await, json!({"both": "b"}));
}

#[tokio::test]
async fn a_new_object_has_the_defaults_of_its_status() {
    let api = Api::start();
    let mut definition = widgets(&api);
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["default"] =
        json!({"phase": "New"});
    api.crd(definition).await;
    let path = format!("/apis/{}/v1/namespaces/{}/widgets", group(&api), api.namespace().await);
    let mut body = widget(&api, "a");
    body["status"] = json!({"phase": "Old", "replicas": 2});
    let tried = api.post(&format!("{path}?dryRun=All"), body.clone()).await.is(201);
    assert_eq!(tried.at("/status"), json!({"phase": "New"}));
    let created = api.post(&path, body).await.is(201);
    assert_eq!(created.at("/status"), json!({"phase": "New"}));
    assert_eq!(created.at("/metadata/generation"), 1);
    assert_eq!(api.get(&format!("{path}/a")).await.at("/status"), json!({"phase": "New"}));
}

#[tokio::test]
async fn a_watch_does_not_reach_back_before_its_definition() {
    let api = Api::start();
    let version = api.get("/api/v1/namespaces/default").await.version();
    let path = widgets_path(&api).await;
    let mut watch = api.watch(&format!("{path}?resourceVersion={version}")).await;
    let event = watch.next().await;
    assert_eq!(event.object["code"], 410, "{}", event.object);
}

#[tokio::test]
async fn an_object_that_outlives_its_definition_counts_its_deletion() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.crd(widgets(&api)).await;
    let path = format!("/apis/{}/v1/namespaces/{ns}/widgets", group(&api));
    let mut body = widget(&api, "x");
    body["metadata"]["finalizers"] = json!(["example.com/f"]);
    assert_eq!(api.post(&path, body).await.is(201).at("/metadata/generation"), json!(1));
    api.delete(&format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{}", group(&api)))
        .await
        .is(200);
    let path = format!("{path}/x");
    let marked = api.eventually(&path, |reply| reply.at("/metadata/deletionTimestamp") != Value::Null).await;
    assert_eq!(marked.at("/metadata/generation"), json!(2));
    api.patch(&path, MERGE_PATCH, json!({"metadata": {"finalizers": null}})).await.is(200);
}

#[tokio::test]
async fn the_metadata_of_an_embedded_resource_is_checked() {
    let api = Api::start();
    let embedded = json!({
        "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true
    });
    let spec = json!({"type": "object", "properties": {
        "template": embedded, "more": {"type": "array", "items": embedded}
    }});
    let path = with_spec(&api, spec).await;
    let mut seen = String::new();
    for metadata in [
        json!({}),
        json!({"name": "A_B", "labels": {"a": "b"}, "finalizers": ["x"], "generateName": "p-"}),
        json!({"name": "a/b"}),
        json!({"name": "."}),
        json!({"generateName": "a/"}),
        json!({"namespace": "A"}),
        json!({"generation": -1}),
        json!({"labels": {"a b": "c"}}),
        json!({"labels": {"a": "c d"}}),
        json!({"annotations": {"a b": "c"}}),
        json!({"finalizers": ["a b"]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": ""}]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "Event", "name": "a", "uid": "u"}]}),
    ] {
        let template = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata});
        let reply = create(&api, &format!("{path}?dryRun=All"), json!({"template": template})).await;
        writeln!(seen, "{} {}", reply.code, reply.at("/details/causes")).unwrap();
    }
    let pods = json!([{"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "c d"}}}]);
    let refused = create(&api, &path, json!({"more": pods})).await.is(422);
    assert_eq!(refused.at("/details/causes/0/field"), "spec.more[0].metadata.labels");
    expect![[r#"
        201 null
        201 null
        422 [{"field":"spec.template.metadata.name","message":"Invalid value: \"a/b\": may not contain '/'","reason":"FieldValueInvalid"}]
        422 [{"field":"spec.template.metadata.name","message":"Invalid value: \".\": may not be '.'","reason":"FieldValueInvalid"}]
        422 [{"field":"spec.template.metadata.generateName","message":"Invalid value: \"a/\": may not contain '/'","reason":"FieldValueInvalid"}]
        422 [{"field":"spec.template.metadata.namespace","message":"Invalid value: \"A\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')","reason":"FieldValueInvalid"}]
        422 [{"field":"spec.template.metadata.generation","message":"Invalid value: -1: must be greater than or equal to 0","reason":"FieldValueInvalid"}]
        422 [{"field":"spec.template.metadata.labels","message":"Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')","reason":"FieldValueInvalid"}]
        422 [{"field":"spec.template.metadata.labels","message":"Invalid value: \"c d\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')","reason":"FieldValueInvalid"}]
        422 [{"field":"spec.template.metadata.annotations","message":"Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')","reason":"FieldValueInvalid"}]
        422 [{"field":"spec.template.metadata.finalizers","message":"Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')","reason":"FieldValueInvalid"}]
        422 [{"field":"spec.template.metadata.ownerReferences[0].uid","message":"Required value: must not be empty","reason":"FieldValueRequired"}]
        422 [{"field":"spec.template.metadata.ownerReferences[0]","message":"Invalid value: {\"apiVersion\":\"v1\",\"kind\":\"Event\",\"name\":\"a\",\"uid\":\"u\"}: /v1, Kind=Event is disallowed from being an owner","reason":"FieldValueInvalid"}]
    "#]].assert_eq(&seen);
}
