//! Types of small schemas.

use serde_json::{Value, json};

use super::{Options, generate};
use crate::definition::Definition;

fn types(schema: Value) -> String {
    let document = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "foos.a.example.com" },
        "spec": { "group": "a.example.com", "scope": "Namespaced", "names": { "kind": "Foo", "plural": "foos", "shortNames": ["f"] },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }] },
    });
    let definition = Definition::parse(&document).expect("a definition").expect("a CRD");
    let files = generate(&[definition], &Options::default());
    assert_eq!(files[0].path, "a/v1.rs");
    files[0].text.clone()
}

fn of_spec(properties: Value) -> String {
    types(
        json!({ "type": "object", "properties": { "spec": { "type": "object", "required": ["name"], "properties": properties } } }),
    )
}

#[track_caller]
fn has(text: &str, wanted: &[&str]) {
    for line in wanted {
        assert!(text.lines().any(|found| found.trim() == *line), "no {line:?} in:\n{text}");
    }
}

#[test]
fn fields_have_the_types_of_the_schema() {
    let text = of_spec(json!({
        "name": { "type": "string", "description": "The name.\n    indented\n```\ncode\n```" },
        "replicas": { "type": "integer", "format": "int32", "minimum": 0 },
        "port": { "x-kubernetes-int-or-string": true },
        "labels": { "type": "object", "additionalProperties": { "type": "string" } },
        "template": { "type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-embedded-resource": true },
        "anything": { "x-kubernetes-preserve-unknown-fields": true },
        "items": { "type": "array", "items": { "type": "object", "properties": { "type": { "type": "string" } } } },
        "mode": { "type": "string", "enum": ["", "on", "On", "10.0"] },
        "since": { "type": "string", "format": "date-time" },
    }));
    has(
        &text,
        &[
            "pub name: String,",
            "/// The name.",
            "/// indented",
            "/// '''",
            "#[schemars(extend(\"minimum\" = 0))]",
            "pub replicas: Option<i32>,",
            "pub port: Option<IntOrString>,",
            "pub labels: Option<BTreeMap<String, String>>,",
            "pub template: Option<Value>,",
            "pub anything: Option<Value>,",
            "pub items: Option<Vec<FooItems>>,",
            "#[serde(rename = \"type\", default, skip_serializing_if = \"Option::is_none\")]",
            "pub type_: Option<String>,",
            "pub mode: Option<FooMode>,",
            "Empty,",
            "On,",
            "On2,",
            "N100,",
            "pub since: Option<Time>,",
        ],
    );
    assert!(
        text.contains("kind = \"Foo\", plural = \"foos\", singular = \"foo\", namespaced, shortname = \"f\""),
        "{text}"
    );
}

#[test]
fn limits_of_any_size_and_formats_are_kept() {
    let text = types(json!({ "type": "object", "properties": {
        "spec": { "type": "object", "minProperties": 1, "x-kubernetes-preserve-unknown-fields": true, "properties": {
            "port": { "type": "integer", "maximum": 4_294_967_295_u32 },
            "huge": { "type": "integer", "minimum": -2_147_483_649_i64, "maximum": u64::MAX },
            "bundle": { "type": "string", "format": "byte" },
            "since": { "type": "string", "format": "date-time" },
            "code": { "type": "integer", "enum": [301, 302] },
        } },
        "status": { "type": "object", "maxProperties": 3 },
    } }));
    has(
        &text,
        &[
            "#[schemars(extend(\"minProperties\" = 1))]",
            "#[schemars(extend(\"maxProperties\" = 3))]",
            "#[schemars(extend(\"maximum\" = 4294967295_i64))]",
            "#[schemars(extend(\"minimum\" = -2147483649_i64, \"maximum\" = 18446744073709551615_u64))]",
            "#[schemars(extend(\"format\" = \"byte\"))]",
            "#[schemars(extend(\"enum\" = [301, 302]))]",
        ],
    );
    assert_eq!(text.matches("extend(").count(), 6, "{text}");
}

#[test]
fn limits_of_elements_are_repeated_at_their_field() {
    let text = of_spec(json!({
        "hosts": { "type": "array", "maxItems": 5, "items": { "type": "string", "maxLength": 63, "description": "A host." } },
        "limits": { "type": "object", "additionalProperties": { "x-kubernetes-int-or-string": true, "pattern": "^[0-9]+$" } },
        "routes": { "type": "array", "items": { "x-kubernetes-preserve-unknown-fields": true } },
        "words": { "type": "array", "items": { "type": "string" } },
        "parts": { "type": "array", "items": { "type": "object", "minProperties": 1, "properties": { "x": { "type": "string" } } } },
    }));
    has(
        &text,
        &[
            "#[schemars(extend(\"maxItems\" = 5, \"items\" = serde_json::json!({\"maxLength\": 63, \"type\": \"string\"})))]",
            "#[schemars(extend(\"additionalProperties\" = serde_json::json!({\"pattern\": \"^[0-9]+$\", \"x-kubernetes-int-or-string\": true})))]",
            "#[schemars(extend(\"items\" = serde_json::json!({\"x-kubernetes-preserve-unknown-fields\": true})))]",
        ],
    );
    assert_eq!(text.matches("extend(").count(), 3, "{text}");
}

#[test]
fn names_do_not_clash() {
    let text = of_spec(json!({
        "fooBar": { "type": "object", "properties": { "x": { "type": "string" } } },
        "foo-bar": { "type": "string" },
        "foo": { "type": "object", "properties": { "bar": { "type": "object", "properties": { "z": { "type": "string" } } } } },
        "self": { "type": "string" }, "Spec": { "type": "object", "properties": { "y": { "type": "string" } } },
    }));
    has(
        &text,
        &["pub foo_bar: Option<String>,", "pub foo_bar_2: Option<FooFooBar2>,", "pub self_: Option<String>,"],
    );
    has(
        &text,
        &[
            "pub struct FooSpec {",
            "pub struct FooSpec2 {",
            "pub struct FooFooBar {",
            "pub struct FooFooBar2 {",
        ],
    );
}

#[test]
fn equal_schemas_are_one_type_which_several_kinds_name_without_a_kind() {
    let reference = |about: &str| json!({ "type": "object", "description": about, "required": ["key"], "properties": { "key": { "type": "string" } } });
    let definition = |kind: &str, properties: Value| {
        let spec = json!({ "type": "object", "properties": properties });
        let document = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": kind },
            "spec": { "group": "a.example.com", "scope": "Namespaced", "names": { "kind": kind, "plural": kind.to_lowercase() },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "properties": { "spec": spec } } } }] },
        });
        Definition::parse(&document).expect("a definition").expect("a CRD")
    };
    let only_one = json!({ "type": "object", "properties": { "x": { "type": "string" } } });
    let kinds = [
        definition(
            "Foo",
            json!({ "tlsKey": reference("One."), "caKey": reference("Two."), "left": only_one, "right": only_one }),
        ),
        // The kind has the name that the shared type would have.
        definition("TlsKey", json!({ "bar": reference("Three.") })),
        definition("Zoo", json!({ "bars": { "type": "array", "items": reference("Four.") } })),
    ];
    let text = generate(&kinds, &Options::default())[0].text.clone();
    has(
        &text,
        &[
            "pub struct CaKey {",
            "pub ca_key: Option<CaKey>,",
            "pub tls_key: Option<CaKey>,",
            "pub bar: Option<CaKey>,",
            "pub bars: Option<Vec<CaKey>>,",
            "pub left: Option<FooLeft>,",
            "pub right: Option<FooLeft>,",
        ],
    );
    assert_eq!(text.matches("pub struct ").count(), 5, "{text}");
}

#[test]
fn what_several_versions_have_is_one_type() {
    let version = |name: &str, properties: Value| {
        let spec = json!({ "type": "object", "properties": properties });
        json!({ "name": name, "served": true, "storage": name == "v1",
            "schema": { "openAPIV3Schema": { "properties": { "spec": spec } } } })
    };
    let port =
        json!({ "type": "object", "properties": { "mode": { "type": "string", "enum": ["A", "B"] } } });
    let with = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } } });
    let document = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "foos" },
        "spec": { "group": "a.example.com", "scope": "Namespaced", "names": { "kind": "Foo", "plural": "foos" }, "versions": [
            version("v1", json!({ "port": port, "own": with("x"), "other": with("y") })),
            // The shared type would have the name of the kind's spec, or of another type of this version.
            version("v2", json!({ "spec": port, "own": with("z"), "other": with("y") })),
        ] },
    });
    let definition = Definition::parse(&document).expect("a definition").expect("a CRD");
    let files = generate(&[definition], &Options::default());
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["a/shared.rs", "a/v1.rs", "a/v2.rs", "mod.rs"]);
    let structs = |file: usize| {
        let lines = files[file].text.lines();
        let names =
            lines.filter_map(|line| line.strip_prefix("pub struct ").or(line.strip_prefix("pub enum ")));
        names.map(|name| name.trim_end_matches(" {")).collect::<Vec<_>>()
    };
    assert_eq!(structs(0), ["FooOther", "FooPort", "FooPortMode"]);
    assert_eq!((structs(1), structs(2)), (vec!["FooSpec", "FooOwn"], vec!["FooSpec", "FooOwn"]));
    for file in [1, 2] {
        has(&files[file].text, &["pub use super::shared::*;", "pub other: Option<FooOther>,"]);
    }
    has(&files[2].text, &["pub spec: Option<FooPort>,"]);
    has(&files[3].text, &["pub mod shared;", "pub mod v1;", "pub mod v2;"]);
}

#[test]
fn open_objects_keep_their_other_fields_and_deep_ones_end_as_json() {
    let mut deep = json!({ "type": "string" });
    for _ in 0..100 {
        deep = json!({ "type": "object", "properties": { "a": deep } });
    }
    let text = of_spec(json!({
        "open": { "type": "object", "properties": { "x": { "type": "string" } }, "x-kubernetes-preserve-unknown-fields": true },
        "deep": deep,
    }));
    has(&text, &["pub other_fields: BTreeMap<String, Value>,", "pub a: Option<Value>,"]);
}

#[test]
fn a_kind_with_other_fields_implements_resource_itself() {
    let text = types(json!({ "type": "object", "properties": {
        "data": { "type": "object", "additionalProperties": { "type": "string" } }, "metadata": { "type": "object" } } }));
    has(
        &text,
        &[
            "impl kube::Resource for Foo {",
            "pub data: Option<BTreeMap<String, String>>,",
            "pub metadata: ObjectMeta,",
        ],
    );
    assert!(!text.contains("CustomResource"));
}
