use std::collections::BTreeSet;

use kube::CustomResourceExt as _;
use serde_json::{Value, json};
use windlass_codegen::{
    Inventory,
    manifests::{Manifests, Options},
};

use crate::everything::{Everything, OldEverything};

/// The definition of the kind.
fn definition() -> Value {
    let crds = vec![Everything::crd(), OldEverything::crd()];
    let inventory = Inventory { format: Inventory::FORMAT, crds, ..Inventory::default() };
    let manifests = Manifests::new(&inventory, Options::new("all")).expect("no contradiction");
    manifests.crds()[0].clone()
}

const VERSION: &str = "/spec/versions/0";
const SPEC: &str = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";

/// A marker, where its effect is in the definition (`~` stands for the schema of the spec), and the effect.
fn rows() -> Vec<(&'static str, &'static str, Value)> {
    let one_of = |operator: &str, first: &str, second: &str| {
        json!(format!("(has(self.{first})?1:0)+(has(self.{second})?1:0) {operator}"))
    };
    vec![
        ("groupName", "/spec/group", json!("all.example.com")),
        ("versionName", "/spec/versions/0/name", json!("v1")),
        ("kubebuilder:resource:path", "/spec/names/plural", json!("everythings")),
        ("kubebuilder:resource:singular", "/spec/names/singular", json!("everything")),
        ("kubebuilder:resource:shortName", "/spec/names/shortNames", json!(["ev"])),
        ("kubebuilder:resource:categories", "/spec/names/categories", json!(["all"])),
        ("kubebuilder:resource:scope", "/spec/scope", json!("Cluster")),
        ("kubebuilder:subresource:status", "/spec/versions/0/subresources/status", json!({})),
        (
            "kubebuilder:subresource:scale",
            "/spec/versions/0/subresources/scale",
            json!({ "specReplicasPath": ".spec.number", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector" }),
        ),
        (
            "kubebuilder:printcolumn",
            "/spec/versions/0/additionalPrinterColumns/0",
            json!({
                "name": "Number", "type": "integer", "jsonPath": ".spec.number", "description": "the number", "format": "int32", "priority": 1,
            }),
        ),
        ("kubebuilder:selectablefield", "/spec/versions/0/selectableFields/0/jsonPath", json!(".spec.text")),
        ("kubebuilder:storageversion", "/spec/versions/0/storage", json!(true)),
        ("kubebuilder:unservedversion", "/spec/versions/1/served", json!(false)),
        ("kubebuilder:skipversion", "/spec/versions/2", Value::Null),
        ("kubebuilder:deprecatedversion", "/spec/versions/0/deprecationWarning", json!("use v2")),
        ("kubebuilder:metadata:annotations", "/metadata/annotations/team", json!("web")),
        ("kubebuilder:metadata:labels", "/metadata/labels/tier", json!("front")),
        ("kubebuilder:validation:Minimum", "~/properties/number/minimum", json!(1)),
        ("kubebuilder:validation:Maximum", "~/properties/number/maximum", json!(100)),
        ("kubebuilder:validation:ExclusiveMinimum", "~/properties/number/exclusiveMinimum", json!(true)),
        ("kubebuilder:validation:ExclusiveMaximum", "~/properties/number/exclusiveMaximum", json!(true)),
        ("kubebuilder:validation:MultipleOf", "~/properties/number/multipleOf", json!(5)),
        ("kubebuilder:validation:MinLength", "~/properties/text/minLength", json!(2)),
        ("kubebuilder:validation:MaxLength", "~/properties/text/maxLength", json!(63)),
        ("kubebuilder:validation:Pattern", "~/properties/text/pattern", json!("^[a-z]+$")),
        ("kubebuilder:validation:Format", "~/properties/text/format", json!("hostname")),
        ("kubebuilder:title", "~/properties/text/title", json!("Text")),
        ("kubebuilder:example", "~/properties/text/example", json!("web")),
        (
            "kubebuilder:externalDocs",
            "~/externalDocs",
            json!({ "url": "https://example.com/spec", "description": "the spec" }),
        ),
        ("kubebuilder:validation:MinItems", "~/properties/list/minItems", json!(1)),
        ("kubebuilder:validation:MaxItems", "~/properties/list/maxItems", json!(5)),
        ("kubebuilder:validation:UniqueItems", "~/properties/list/x-kubernetes-list-type", json!("set")),
        ("kubebuilder:validation:MinProperties", "~/properties/map/minProperties", json!(1)),
        ("kubebuilder:validation:MaxProperties", "~/properties/map/maxProperties", json!(3)),
        ("kubebuilder:validation:Enum", "~/properties/colour/enum", json!(["red", "green"])),
        ("k8s:enum", "~/properties/mode/enum", json!(["Fast", "Slow"])),
        ("kubebuilder:validation:Type", "~/properties/typed/type", json!("string")),
        ("kubebuilder:validation:items:Minimum", "~/properties/numbers/items/minimum", json!(0)),
        ("kubebuilder:validation:items:Maximum", "~/properties/numbers/items/maximum", json!(9)),
        (
            "kubebuilder:validation:items:ExclusiveMaximum",
            "~/properties/numbers/items/exclusiveMaximum",
            json!(true),
        ),
        ("kubebuilder:validation:items:MultipleOf", "~/properties/numbers/items/multipleOf", json!(3)),
        ("kubebuilder:validation:items:MinLength", "~/properties/list/items/minLength", json!(1)),
        ("kubebuilder:validation:items:MaxLength", "~/properties/list/items/maxLength", json!(9)),
        ("kubebuilder:validation:items:Pattern", "~/properties/list/items/pattern", json!("^a")),
        ("kubebuilder:validation:items:Format", "~/properties/list/items/format", json!("hostname")),
        ("kubebuilder:validation:items:Enum", "~/properties/list/items/enum", json!(["a", "ab"])),
        (
            "kubebuilder:validation:items:XValidation",
            "~/properties/list/items/x-kubernetes-validations/0/rule",
            json!("self != 'b'"),
        ),
        ("kubebuilder:validation:items:MinItems", "~/properties/lists/items/minItems", json!(1)),
        ("kubebuilder:validation:items:MaxItems", "~/properties/lists/items/maxItems", json!(2)),
        ("kubebuilder:validation:items:MinProperties", "~/properties/maps/items/minProperties", json!(1)),
        ("kubebuilder:validation:items:MaxProperties", "~/properties/maps/items/maxProperties", json!(2)),
        (
            "kubebuilder:validation:XValidation",
            "~/x-kubernetes-validations/3",
            json!({
                "rule": "self.number <= self.wholeNumber",
                "message": "number is above wholeNumber",
                "messageExpression": "'number is above the whole number'",
                "reason": "FieldValueForbidden",
                "fieldPath": ".number",
            }),
        ),
        ("k8s:immutable", "~/properties/number/x-kubernetes-validations/0/rule", json!("self == oldSelf")),
        (
            "kubebuilder:validation:AtLeastOneOf",
            "~/x-kubernetes-validations/0/rule",
            json!("has(self.text)||has(self.list)"),
        ),
        (
            "kubebuilder:validation:AtMostOneOf",
            "~/x-kubernetes-validations/1/rule",
            one_of("<= 1", "first", "second"),
        ),
        (
            "kubebuilder:validation:ExactlyOneOf",
            "~/x-kubernetes-validations/2/rule",
            one_of("== 1", "left", "rightSide"),
        ),
        ("required", "~/required", json!(["number", "wholeNumber"])),
        ("optional", "~/properties/second/type", json!("string")),
        ("nullable", "~/properties/nothing/nullable", json!(true)),
        ("kubebuilder:default", "~/properties/defaulted/default", json!(3)),
        ("default", "~/properties/defaultPorts/default", json!([{ "name": "web", "port": 80 }])),
        (
            "kubebuilder:pruning:PreserveUnknownFields",
            "~/properties/open/x-kubernetes-preserve-unknown-fields",
            json!(true),
        ),
        (
            "kubebuilder:validation:EmbeddedResource",
            "~/properties/template/x-kubernetes-embedded-resource",
            json!(true),
        ),
        (
            "kubebuilder:validation:Schemaless",
            "~/properties/anything",
            json!({ "x-kubernetes-preserve-unknown-fields": true }),
        ),
        (
            "kubebuilder:validation:XIntOrString",
            "~/properties/either/x-kubernetes-int-or-string",
            json!(true),
        ),
        ("listType", "~/properties/atoms/x-kubernetes-list-type", json!("atomic")),
        ("listMapKey", "~/properties/ports/x-kubernetes-list-map-keys", json!(["name", "port"])),
        ("mapType", "~/properties/map/x-kubernetes-map-type", json!("atomic")),
        ("structType", "~/properties/port/x-kubernetes-map-type", json!("atomic")),
        ("crd:maxDescLen", "~/properties/silent/description", Value::Null),
    ]
}

#[test]
fn every_marker_has_its_effect() {
    let definition = definition();
    let mut wrong = Vec::new();
    for (marker, path, wanted) in rows() {
        let path = path.replace('~', SPEC);
        let found = definition.pointer(&path).cloned().unwrap_or_default();
        if found != wanted {
            wrong.push(format!("{marker}: {path} is {found}, not {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_marker_of_the_table_is_tested_here() {
    let table = include_str!("../../../../docs/markers.md");
    let listed: BTreeSet<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| `+")?.split_once('`'))
        .map(|(marker, _)| marker)
        .collect();
    let rows = rows();
    let tested: BTreeSet<&str> = rows.iter().map(|(marker, ..)| *marker).collect();
    assert_eq!(listed, tested);
}

#[test]
fn a_rule_may_see_that_there_is_no_old_value() {
    let rule = definition().pointer(&format!("{SPEC}/properties/ruled/x-kubernetes-validations/0")).cloned();
    assert_eq!(
        rule,
        Some(json!({ "rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": true }))
    );
    assert!(definition().pointer(VERSION).is_some());
}
