//! CustomResourceDefinitions and the defined kinds.

use std::sync::Arc;

use fastrand::Rng;
use serde_json::{Map, Value, json};
use windlass_schema::Schema;

use super::{pick, values};
use crate::kind::Kind;
use crate::webhook;

/// The API group of the run's custom resources.
pub(super) const GROUP: &str = "twin00.example.com";

/// The last written definition.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) object: Value,
}

/// Returns a valid definition.
pub(super) fn definition(random: &mut Rng, plural: &str) -> Definition {
    let kind = kind_of(plural);
    let scope = if random.u32(..5) == 0 { "Cluster" } else { "Namespaced" };
    let mut versions = vec![version(random, "v1", true)];
    match random.u32(..4) {
        0 => versions.push(version(random, "v1beta1", false)),
        1 => {
            // The same schema with an additional field, like a typical second version.
            let mut second = versions[0].clone();
            second["name"] = "v2".into();
            second["storage"] = false.into();
            second["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["extra"] =
                json!({"type": "string", "default": "more"});
            versions.push(second);
        }
        _ => {}
    }
    let mut names = json!({"plural": plural, "singular": kind.to_lowercase(), "kind": kind});
    if random.bool() {
        names["shortNames"] = json!([&plural[..2]]);
    }
    if random.bool() {
        names["listKind"] = format!("{kind}List").into();
        names["categories"] = json!(["all"]);
    }
    let mut object = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}"), "labels": {"run": "twin00"}},
        "spec": {"group": GROUP, "scope": scope, "names": names, "versions": versions}
    });
    if random.u32(..6) == 0 {
        object["spec"]["conversion"] = json!({"strategy": "None"});
    }
    if random.u32(..3) == 0 {
        object["spec"]["conversion"] = conversion(random);
    }
    if random.u32(..12) == 0 {
        object["spec"]["preserveUnknownFields"] = false.into();
    }
    Definition { name: format!("{plural}.{GROUP}"), object }
}

/// Returns a conversion by the webhook server. The server rarely refuses.
fn conversion(random: &mut Rng) -> Value {
    let path = if random.u32(..6) == 0 { "/convert-error" } else { "/convert" };
    json!({"strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"],
        "clientConfig": {"url": format!("{}{path}", webhook::URL), "caBundle": webhook::AUTHORITY}
    }})
}

fn kind_of(plural: &str) -> String {
    let mut letters = plural.trim_end_matches('s').chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

fn version(random: &mut Rng, name: &str, storage: bool) -> Value {
    let mut version = json!({
        "name": name, "served": true, "storage": storage,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": properties(random),
            "status": {"type": "object", "properties": {
                "phase": {"type": "string", "enum": ["On", "Off"]}, "replicas": {"type": "integer"}, "selector": {"type": "string"}
            }}
        }}}
    });
    if random.u32(..3) > 0 {
        version["subresources"] = json!({"status": {}});
        if random.bool() {
            version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"] =
                json!({"type": "integer"});
            version["subresources"]["scale"] = json!({
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"
            });
        }
    }
    if random.u32(..3) == 0 {
        version["additionalPrinterColumns"] = json!([
            {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
            {"name": "Count", "type": "integer", "jsonPath": ".spec.count", "priority": 1},
            {"name": "Since", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
        ]);
    }
    if random.u32(..3) == 0 {
        version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["colour"] =
            json!({"type": "string", "enum": ["red", "green"]});
        version["selectableFields"] = json!([{"jsonPath": ".spec.colour"}]);
    }
    if random.u32(..8) == 0 {
        version["deprecated"] = true.into();
        if random.bool() {
            version["deprecationWarning"] = "do not use this".into();
        }
    }
    version
}

/// Returns a schema of `spec` with some of the properties below.
fn properties(random: &mut Rng) -> Value {
    let all = [
        ("size", json!({"type": "integer", "minimum": 1, "maximum": 10})),
        ("count", json!({"type": "integer", "format": "int32", "default": 1})),
        ("ratio", json!({"type": "number", "multipleOf": 0.5, "exclusiveMinimum": true, "minimum": 0})),
        ("name", json!({"type": "string", "minLength": 1, "maxLength": 5})),
        ("mail", json!({"type": "string", "pattern": "^[a-z]+@[a-z]+$"})),
        ("mode", json!({"type": "string", "enum": ["fast", "slow"], "default": "fast"})),
        ("maybe", json!({"type": "string", "nullable": true, "default": "yes"})),
        ("on", json!({"type": "boolean", "default": false})),
        ("port", json!({"x-kubernetes-int-or-string": true})),
        ("free", json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})),
        ("any", json!({"x-kubernetes-preserve-unknown-fields": true})),
        ("labels", json!({"type": "object", "additionalProperties": {"type": "string"}})),
        (
            "limits",
            json!({"type": "object", "additionalProperties": {"type": "integer"}, "maxProperties": 2}),
        ),
        (
            "tags",
            json!({"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 3, "x-kubernetes-list-type": "set"}),
        ),
        ("list", json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "atomic"})),
        (
            "parts",
            json!({
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"],
                "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}, "n": {"type": "integer", "default": 3}}}
            }),
        ),
        (
            "template",
            json!({
                "type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true
            }),
        ),
        (
            "deep",
            json!({
                "type": "object", "required": ["must"], "default": {"must": "be"},
                "properties": {"must": {"type": "string"}, "inner": {"type": "object", "properties": {"x": {"type": "integer", "default": 7}}}}
            }),
        ),
        ("when", json!({"type": "string", "format": "date-time"})),
        ("address", json!({"type": "string", "format": "ipv4"})),
        ("bytes", json!({"type": "string", "format": "byte"})),
        ("period", json!({"type": "string", "format": "duration"})),
        (
            "either",
            json!({
                "type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]
            }),
        ),
        (
            "some",
            json!({"type": "integer", "anyOf": [{"minimum": 10}, {"maximum": 3}], "not": {"enum": [2]}}),
        ),
    ];
    let mut properties = Map::new();
    for (name, schema) in all {
        if random.u32(..3) == 0 {
            properties.insert(name.to_owned(), schema);
        }
    }
    let mut spec = json!({"type": "object"});
    let names: Vec<String> = properties.keys().cloned().collect();
    if !names.is_empty() && random.bool() {
        spec["required"] = json!([pick(random, &names)]);
    }
    if random.u32(..8) == 0 {
        spec["x-kubernetes-preserve-unknown-fields"] = true.into();
    }
    spec["properties"] = properties.into();
    spec
}

/// Returns a definition with a change that a developer could make.
pub(super) fn edit(random: &mut Rng, old: &Definition) -> Definition {
    let mut new = old.clone();
    let fresh = properties(random);
    let Some(versions) = new.object["spec"]["versions"].as_array_mut() else { return new };
    let index = random.usize(..versions.len());
    let spec = "/schema/openAPIV3Schema/properties/spec";
    match random.u32(..8) {
        0..4 => set(&mut versions[index], &format!("{spec}/properties"), fresh["properties"].clone()),
        4 => set(&mut versions[index], spec, json!({"type": "object", "properties": fresh["properties"]})),
        5 => {
            let columns = json!([{"name": "Kind", "type": "string", "jsonPath": ".kind"}]);
            versions[index]["additionalPrinterColumns"] = columns;
        }
        6 if versions.len() > 1 => {
            for version in versions.iter_mut() {
                version["storage"] = (version["storage"] != true).into();
            }
        }
        _ if versions.len() > 1 => versions[1]["served"] = (versions[1]["served"] != true).into(),
        _ => versions[index]["subresources"] = json!({"status": {}}),
    }
    new
}

fn set(object: &mut Value, place: &str, value: Value) {
    if let Some(target) = object.pointer_mut(place) {
        *target = value;
    }
}

/// Returns the kinds that a definition serves.
pub(super) fn kinds(random: &mut Rng, definition: &Definition) -> Vec<Arc<Kind>> {
    let spec = &definition.object["spec"];
    let versions = spec["versions"].as_array().cloned().unwrap_or_default();
    let served = versions.iter().filter(|version| version["served"] == true);
    served.map(|version| Arc::new(kind(random, spec, version))).collect()
}

fn kind(random: &mut Rng, spec: &Value, version: &Value) -> Kind {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let schema = &version["schema"]["openAPIV3Schema"];
    let compiled = Schema::compile(schema);
    let root = compiled.root();
    let node = root.property("spec");
    let mut some = || match node {
        Some(node) => json!({"spec": values::typed(random, node, 4)}),
        None => json!({}),
    };
    let subresources = &version["subresources"];
    let status = [
        json!({"phase": "On"}),
        json!({"phase": "Bad"}),
        json!({"replicas": 2, "selector": "app=a"}),
        json!({"unknown": 1}),
        json!(null),
    ];
    let fields = version["selectableFields"].as_array().cloned().unwrap_or_default();
    Kind {
        prefix: format!("apis/{GROUP}/{}", text(&version["name"])),
        plural: text(&spec["names"]["plural"]),
        name: text(&spec["names"]["kind"]),
        namespaced: spec["scope"] == "Namespaced",
        weight: 30,
        scale: subresources["scale"].is_object(),
        object: some(),
        knobs: (0..8).map(|_| some()).collect(),
        status: if subresources["status"].is_object() { status.to_vec() } else { Vec::new() },
        strategic: Vec::new(),
        fields: fields
            .iter()
            .map(|field| text(&field["jsonPath"]).trim_start_matches('.').to_owned())
            .collect(),
        custom: true,
        schema: Some(compiled.clone()),
    }
}
