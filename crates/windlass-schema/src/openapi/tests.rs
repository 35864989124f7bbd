use serde_json::{Value, json};

use super::{CustomKind, openapi_v2, openapi_v2_protobuf, openapi_v3};
use crate::catalog::{Catalog, GroupVersion, Gvk, Resource, Subresource};

/// Asserts that the target of every `$ref` exists.
fn check_references(document: &Value) {
    fn visit(value: &Value, document: &Value) {
        match value {
            Value::Object(members) => {
                if let Some(target) = members.get("$ref").and_then(Value::as_str) {
                    assert!(document.pointer(&target[1..]).is_some(), "{target} leads nowhere");
                }
                members.values().for_each(|value| visit(value, document));
            }
            Value::Array(items) => items.iter().for_each(|value| visit(value, document)),
            _ => {}
        }
    }
    visit(&document["paths"], document);
    visit(&document["components"]["schemas"], document);
}

#[test]
fn every_group_version_has_a_whole_document() {
    let catalog = Catalog::builtin();
    for gv in catalog.group_versions() {
        check_references(&openapi_v3(&catalog, gv, &[]));
    }
}

#[test]
fn components_say_what_a_real_server_says() {
    let catalog = Catalog::builtin();
    let document = openapi_v3(&catalog, catalog.group_version("", "v1").unwrap(), &[]);
    let schemas = &document["components"]["schemas"];
    assert_eq!(
        schemas["io.k8s.api.core.v1.ServicePort"],
        json!({
            "type": "object",
            "required": ["port"],
            "properties": {
                "appProtocol": {"type": "string"},
                "name": {"type": "string"},
                "nodePort": {"type": "integer", "format": "int32"},
                "port": {"type": "integer", "format": "int32", "default": 0},
                "protocol": {"type": "string", "default": "TCP", "enum": ["SCTP", "TCP", "UDP"]},
                "targetPort": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
            },
        })
    );
    assert_eq!(
        schemas["io.k8s.api.core.v1.ConfigMap"]["x-kubernetes-group-version-kind"],
        json!([{"group": "", "version": "v1", "kind": "ConfigMap"}])
    );
    assert_eq!(
        schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"],
        json!({"oneOf": [{"type": "string"}, {"type": "number"}]})
    );
    assert_eq!(schemas["io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1"], json!({"type": "object"}));
}

fn gadgets() -> GroupVersion {
    let kind = Gvk::new("schema.example", "v1", "Gadget");
    let status = Subresource {
        name: "status".into(),
        kind: kind.clone(),
        verbs: vec!["get".into(), "patch".into(), "update".into()],
    };
    let verbs = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
    GroupVersion {
        group: "schema.example".into(),
        version: "v1".into(),
        resources: vec![Resource {
            name: "gadgets".into(),
            singular: "gadget".into(),
            kind,
            namespaced: true,
            verbs: verbs.map(Into::into).to_vec(),
            short_names: Vec::new(),
            categories: Vec::new(),
            subresources: vec![status],
        }],
    }
}

#[test]
fn custom_kinds_are_described_by_their_schema() {
    let schema = json!({"type": "object", "description": "A gadget.", "properties": {
        "spec": {"type": "object", "properties": {"n": {"type": "integer", "default": 1, "description": "How many."}}},
        "tpl": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
    }});
    let kind = CustomKind {
        kind: "Gadget",
        list_kind: "GadgetList",
        plural: "gadgets",
        schema: Some(&schema),
        selectable_fields: &["spec.n".to_owned()],
    };
    let document = openapi_v3(&Catalog::builtin(), &gadgets(), &[kind]);
    check_references(&document);
    let gadget = &document["components"]["schemas"]["example.schema.v1.Gadget"];
    assert_eq!(gadget["properties"]["spec"], schema["properties"]["spec"]);
    assert_eq!(gadget["properties"]["tpl"]["required"], json!(["kind", "apiVersion"]));
    assert_eq!(gadget["x-kubernetes-selectable-fields"], json!([{"fieldPath": "spec.n"}]));
    let path = "/apis/schema.example/v1/namespaces/{namespace}/gadgets/{name}";
    let patch = &document["paths"][path]["patch"];
    assert_eq!(patch["operationId"], "patchSchemaExampleV1NamespacedGadget");
    let names: Vec<&str> =
        patch["parameters"].as_array().unwrap().iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["dryRun", "fieldManager", "fieldValidation", "force"]);
    assert!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_null());
    assert!(document["paths"][format!("{path}/status")]["put"].is_object());
    assert!(document["paths"]["/apis/schema.example/v1/gadgets"]["get"].is_object());
}

/// Returns the v3 documents of all built-in kinds and of a custom kind.
fn all_documents(schema: &Value) -> Vec<Value> {
    let catalog = Catalog::builtin();
    let kind = CustomKind {
        kind: "Gadget",
        list_kind: "GadgetList",
        plural: "gadgets",
        schema: Some(schema),
        selectable_fields: &[],
    };
    let gadgets = gadgets();
    let built_in = catalog.group_versions().iter().map(|gv| openapi_v3(&catalog, gv, &[]));
    built_in.chain([openapi_v3(&catalog, &gadgets, &[kind])]).collect()
}

/// Returns the v2 document of all built-in kinds and of a custom kind.
fn version_two(schema: &Value) -> Value {
    serde_json::from_slice(&openapi_v2(all_documents(schema), [], "1.37").concat()).unwrap()
}

#[test]
fn version_two_has_no_reference_that_leads_nowhere_and_nothing_of_version_three() {
    fn visit(value: &Value, document: &Value) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    if name == "$ref"
                        && let Some(target) = value.as_str()
                    {
                        assert!(document.pointer(&target[1..]).is_some(), "{target} leads nowhere");
                    }
                    visit(value, document);
                }
            }
            Value::Array(items) => items.iter().for_each(|value| visit(value, document)),
            _ => {}
        }
    }
    let document = version_two(&json!({"type": "object"}));
    visit(&document["paths"], &document);
    visit(&document["definitions"], &document);
    let text = document.to_string();
    for part in ["#/components", r#""requestBody""#, r#""oneOf":["#, r#""content":{"#] {
        assert!(!text.contains(part), "{part}");
    }
}

#[test]
fn definitions_of_version_two_say_what_a_real_server_says() {
    let schema = json!({"type": "object", "properties": {"spec": {
        "type": "object",
        "properties": {
            "a": {"type": "string", "default": "x", "maxLength": 5},
            "n": {"type": "object", "nullable": true, "description": "Null.", "properties": {"x": {"type": "string"}}},
            "nl": {"type": "array", "nullable": true, "items": {"type": "string"}},
            "p": {"type": "object", PRESERVES: true, "properties": {"x": {"type": "string"}}},
            "m": {"type": "object", "additionalProperties": {"type": "string", "nullable": true}},
            "mt": {"type": "object", "additionalProperties": true},
            "ios": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "o": {"type": "object", "oneOf": [{"required": ["q"]}], "not": {"required": ["r"]}},
        },
    }}});
    let document = version_two(&schema);
    let definitions = &document["definitions"];
    assert_eq!(
        definitions["example.schema.v1.Gadget"]["properties"]["spec"],
        json!({"type": "object", "properties": {
            "a": {"type": "string", "maxLength": 5},
            "n": {"description": "Null."},
            "nl": {},
            "p": {PRESERVES: true},
            "m": {"type": "object", "additionalProperties": {}},
            "mt": {"type": "object", "additionalProperties": true},
            "ios": {"x-kubernetes-int-or-string": true},
            "o": {"type": "object"},
        }})
    );
    let metadata = &definitions["example.schema.v1.Gadget"]["properties"]["metadata"];
    assert_eq!(metadata["$ref"], "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta");
    assert_eq!(definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"], json!({"type": "string"}));
    assert_eq!(
        definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"],
        json!({"type": "string", "format": "int-or-string"})
    );
    let kinds =
        &definitions["io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"]["x-kubernetes-group-version-kind"];
    let groups: Vec<&Value> = kinds.as_array().unwrap().iter().map(|kind| &kind["group"]).collect();
    assert!(groups.contains(&&json!("")) && groups.contains(&&json!("apps")), "{groups:?}");
    let whole = version_two(&json!({"type": "object", PRESERVES: true}));
    assert_eq!(
        whole["definitions"]["example.schema.v1.Gadget"],
        json!({"type": "object", "x-kubernetes-group-version-kind": [
            {"group": "schema.example", "version": "v1", "kind": "Gadget"},
        ]})
    );
}

const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";

#[test]
fn operations_of_version_two_have_their_body_among_the_parameters() {
    let document = version_two(&json!({"type": "object"}));
    let item = &document["paths"]["/apis/schema.example/v1/namespaces/{namespace}/gadgets/{name}"];
    let patch = &item["patch"];
    assert_eq!(
        patch["consumes"],
        json!([
            "application/apply-patch+yaml",
            "application/json-patch+json",
            "application/merge-patch+json"
        ])
    );
    assert_eq!(patch["produces"], json!(["application/json", "application/yaml"]));
    let body = json!({
        "name": "body", "in": "body", "required": true,
        "schema": {"$ref": "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.Patch"},
    });
    assert_eq!(patch["parameters"][0], body);
    let dry_run = json!({"name": "dryRun", "in": "query", "type": "string", "uniqueItems": true});
    assert_eq!(patch["parameters"][1], dry_run);
    assert_eq!(
        patch["responses"]["200"],
        json!({"description": "OK", "schema": {"$ref": "#/definitions/example.schema.v1.Gadget"}})
    );
    assert_eq!(item["parameters"][0]["in"], "path");
}

#[test]
fn a_document_in_protobuf_has_the_fields_of_gnostic() {
    let document = json!({"components": {"schemas": {
        "A": {"type": "object", "x-k": [1], "properties": {"b": {"minimum": 1.5, "maxLength": 300}}}
    }}});
    let expected: &[u8] =
        b"\x0a\x032.0\x12\x0f\x0a\x0aKubernetes\x12\x011\x42\x00\x4a\x37\x0a\x35\x0a\x01A\x12\x30\
        \xb2\x01\x08\x0a\x06object\
        \xca\x01\x13\x0a\x11\x0a\x01b\x12\x0c\x49\x00\x00\x00\x00\x00\x00\xf8\x3f\x58\xac\x02\
        \xfa\x01\x0c\x0a\x03x-k\x12\x05\x12\x03[1]\
        \x62\x11\x0a\x0f\x0a\x0bBearerToken\x12\x00\
        \x6a\x4f\x0a\x4d\x0a\x0bBearerToken\x12\x3e\x12\x3c\x0a\x06apiKey\x12\x0dauthorization\x1a\x06header\
        \x22\x1bBearer Token authentication";
    assert_eq!(openapi_v2_protobuf([document], [], "1").concat(), expected);
}
