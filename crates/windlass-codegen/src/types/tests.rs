//! Types of small schemas.

use serde_json::{Value, json};

use super::{Options, generate};
use crate::definition::Definition;

fn types(schema: Value) -> String {
    types_with(schema, &Options::default())
}

fn types_with(schema: Value, options: &Options) -> String {
    let document = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": "foos.a.example.com" },
        "spec": { "group": "a.example.com", "scope": "Namespaced", "names": { "kind": "Foo", "plural": "foos", "shortNames": ["f"] },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }] },
    });
    let definition = Definition::parse(&document).expect("a definition").expect("a CRD");
    let files = generate(&[definition], options);
    assert_eq!(files[0].path, "a/v1.rs");
    files[0].text.clone()
}

fn of_spec(properties: Value) -> String {
    types(
        json!({ "type": "object", "required": ["spec"], "properties": { "spec": { "type": "object", "required": ["name"], "properties": properties } } }),
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
    let text = types(json!({ "type": "object", "required": ["spec"], "properties": {
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
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": { "required": ["spec"], "properties": { "spec": spec } } } }] },
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
            "schema": { "openAPIV3Schema": { "required": ["spec"], "properties": { "spec": spec } } } })
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

#[test]
fn a_spec_is_optional_if_the_definition_does_not_require_the_spec() {
    let spec =
        json!({ "type": "object", "minProperties": 1, "properties": { "size": { "type": "integer" } } });
    let status = json!({ "type": "object", "properties": { "ready": { "type": "boolean" } } });
    let schema = json!({ "type": "object", "properties": { "spec": spec, "status": status } });
    let text = types(schema.clone());
    has(
        &text,
        &[
            "pub struct FooSpec {",
            "pub struct FooStatus {",
            "#[schemars(extend(\"minProperties\" = 1))]",
            "pub struct Foo {",
            "pub spec: Option<FooSpec>,",
            "pub status: Option<FooStatus>,",
            "pub fn new(name: &str, spec: FooSpec) -> Self {",
            "impl kube::Resource for Foo {",
        ],
    );
    assert!(!text.contains("CustomResource"), "{text}");
    let apply = Options { apply: Some("windlass_apply".to_owned()), ..Options::default() };
    let text = types_with(schema.clone(), &apply);
    has(&text, &["#[apply(kind = \"Foo\", namespaced, status = \"FooStatus\")]"]);

    let with = |name: &str, value: Value| {
        let mut changed = schema.clone();
        changed[name] = value;
        types(changed)
    };
    assert!(with("required", json!(["spec"])).contains("#[derive(CustomResource,"));
    let mut defaulted = schema.clone();
    defaulted["properties"]["spec"]["default"] = json!({});
    assert!(types(defaulted).contains("#[derive(CustomResource,"), "the server adds the spec");
}

#[test]
fn quantities_may_be_large_numbers() {
    let quantity = json!({ "x-kubernetes-int-or-string": true, "anyOf": [{ "type": "integer" }, { "type": "string" }],
        "pattern": "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$" });
    let text = of_spec(json!({
        "memory": quantity,
        "limits": { "type": "object", "additionalProperties": quantity },
        "port": { "x-kubernetes-int-or-string": true },
        "percent": { "x-kubernetes-int-or-string": true, "pattern": "^[0-9]+%$" },
    }));
    has(
        &text,
        &[
            "use k8s_openapi::apimachinery::pkg::api::resource::Quantity;",
            "pub memory: Option<Quantity>,",
            "pub limits: Option<BTreeMap<String, Quantity>>,",
            "pub port: Option<IntOrString>,",
            "pub percent: Option<IntOrString>,",
        ],
    );
}

#[test]
fn an_open_root_keeps_other_fields_and_each_field_has_its_name() {
    let spec = json!({ "type": "object", "properties": { "size": { "type": "integer" } } });
    let open = |properties: Value| {
        types(json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true, "required": ["spec"],
            "properties": properties }))
    };
    let text = open(json!({ "spec": spec }));
    has(&text, &["pub spec: FooSpec,", "pub other_fields: BTreeMap<String, Value>,"]);
    assert!(!text.contains("CustomResource"), "{text}");

    let text = open(json!({ "foo_bar": { "type": "string" }, "other_fields": { "type": "string" } }));
    has(
        &text,
        &[
            "#[serde(rename = \"apiVersion\")]",
            "pub foo_bar: Option<String>,",
            "#[serde(rename = \"other_fields\", default, skip_serializing_if = \"Option::is_none\")]",
            "pub other_fields_2: Option<String>,",
            "pub other_fields: BTreeMap<String, Value>,",
        ],
    );
    assert!(!text.contains("rename_all"), "{text}");
}

#[test]
fn null_is_kept_where_an_absent_value_means_something_else() {
    let text = types(json!({ "type": "object", "required": ["spec"], "properties": { "spec": {
        "type": "object", "required": ["chosen"], "properties": {
            "chosen": { "type": "string", "nullable": true, "maxLength": 9 },
            "list": { "type": "array", "items": { "type": "integer", "nullable": true } },
            "map": { "type": "object", "additionalProperties": { "type": "object", "nullable": true, "properties": {
                "x": { "type": "string" } } } },
        } } } }));
    has(
        &text,
        &[
            "#[schemars(required, extend(\"maxLength\" = 9, \"nullable\" = true))]",
            "pub chosen: Option<String>,",
            "pub list: Option<Vec<Option<i64>>>,",
            "pub map: Option<BTreeMap<String, Option<FooMap>>>,",
        ],
    );
    assert_eq!(text.matches("skip_serializing_if").count(), 3, "{text}");
}

#[test]
fn groups_with_equal_first_labels_have_their_own_modules() {
    let definition = |group: &str| {
        let schema = json!({ "type": "object", "properties": { "spec": { "type": "object" } } });
        let document = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": { "name": group },
            "spec": { "group": group, "scope": "Namespaced", "names": { "kind": "Foo", "plural": "foos" },
                "versions": [{ "name": "v1", "served": true, "storage": true, "schema": { "openAPIV3Schema": schema } }] },
        });
        Definition::parse(&document).expect("a definition").expect("a CRD")
    };
    let groups = ["apps.example.com", "apps.example.org", "other.example.org"].map(definition);
    let files = generate(&groups, &Options::default());
    let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["apps_example_com/v1.rs", "apps_example_org/v1.rs", "mod.rs", "other/v1.rs"]);
}
