use serde_json::{Value, json};

use super::{CustomKind, openapi_v3};
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
