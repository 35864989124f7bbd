//! A kind that uses every marker of controller-gen, as attributes.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_derive::schema;

/// The desired state.
#[schema(
    at_least_one_of(text, list),
    at_most_one_of(first, second),
    exactly_one_of(left, right_side),
    rule(
        "self.number <= self.wholeNumber",
        message = "number is above wholeNumber",
        message_expression = "'number is above the whole number'",
        reason = "FieldValueForbidden",
        field_path = ".number"
    ),
    external_docs(url = "https://example.com/spec", description = "the spec"),
    title = "Spec",
    min_properties = 1,
    max_properties = 60
)]
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "all.example.com",
    version = "v1",
    kind = "Everything",
    plural = "everythings",
    singular = "everything",
    shortname = "ev",
    category = "all",
    doc = "Everything is a kind with all markers.",
    status = "EverythingStatus",
    scale(
        spec_replicas_path = ".spec.number",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(
        name = "Number",
        type_ = "integer",
        json_path = ".spec.number",
        description = "the number",
        format = "int32",
        priority = "1"
    ),
    selectable = ".spec.text",
    annotation("team", "web"),
    label("tier", "front"),
    deprecated = "use v2"
)]
pub(crate) struct EverythingSpec {
    #[schema(minimum = 1, maximum = 100, exclusive_minimum, exclusive_maximum, multiple_of = 5, immutable)]
    pub(crate) number: i32,
    pub(crate) whole_number: i64,
    #[schema(
        min_length = 2,
        max_length = 63,
        pattern = "^[a-z]+$",
        format = "hostname",
        title = "Text",
        example = "web",
        external_docs(url = "https://example.com/text")
    )]
    pub(crate) text: Option<String>,
    #[schema(
        min_items = 1,
        max_items = 5,
        list_type = "set",
        items(
            min_length = 1,
            max_length = 9,
            pattern = "^a",
            format = "hostname",
            enum("a", "ab"),
            rule("self != 'b'", message = "not b")
        )
    )]
    pub(crate) list: Option<Vec<String>>,
    #[schema(items(minimum = 0, maximum = 9, exclusive_maximum, multiple_of = 3))]
    pub(crate) numbers: Option<Vec<i32>>,
    #[schema(items(max_items = 2, min_items = 1))]
    pub(crate) lists: Option<Vec<Vec<String>>>,
    #[schema(items(max_properties = 2, min_properties = 1))]
    pub(crate) maps: Option<Vec<BTreeMap<String, String>>>,
    #[schema(list_type = "map", list_map_key("name", "port"))]
    pub(crate) ports: Option<Vec<Port>>,
    #[schema(list_type = "atomic")]
    pub(crate) atoms: Option<Vec<String>>,
    #[schema(map_type = "atomic", min_properties = 1, max_properties = 3)]
    pub(crate) map: Option<BTreeMap<String, String>>,
    #[schema(struct_type = "atomic")]
    pub(crate) port: Option<Port>,
    #[schema(enum("red", "green"))]
    pub(crate) colour: Option<String>,
    pub(crate) mode: Option<Mode>,
    #[serde(default = "three")]
    pub(crate) defaulted: i32,
    #[schema(default = [{ "name": "web", "port": 80 }])]
    pub(crate) default_ports: Option<Vec<Port>>,
    #[schema(nullable)]
    pub(crate) nothing: Option<String>,
    #[schema(preserve_unknown_fields)]
    pub(crate) open: Option<Port>,
    #[schema(embedded_resource, preserve_unknown_fields, type = "object")]
    pub(crate) template: Option<Value>,
    #[schema(schemaless, preserve_unknown_fields)]
    pub(crate) anything: Option<Port>,
    #[schema(int_or_string)]
    pub(crate) either: Option<String>,
    pub(crate) target_port: Option<IntOrString>,
    pub(crate) size: Option<Quantity>,
    pub(crate) typed: Option<Stamp>,
    /// Not in the schema.
    #[schema(no_description)]
    pub(crate) silent: Option<String>,
    #[schema(rule("!oldSelf.hasValue() || self >= oldSelf.value()", optional_old_self = true))]
    pub(crate) ruled: Option<i32>,
    pub(crate) first: Option<String>,
    pub(crate) second: Option<String>,
    pub(crate) left: Option<String>,
    pub(crate) right_side: Option<String>,
}

fn three() -> i32 {
    3
}

/// A port.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) port: i32,
}

/// A stamp.
#[schema(schemaless, type = "string")]
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub(crate) struct Stamp {
    pub(crate) seconds: i64,
}

/// A mode.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
pub(crate) enum Mode {
    Fast,
    Slow,
}

/// The observed state.
#[derive(Serialize, Deserialize, KubeSchema, Clone, Debug)]
pub(crate) struct EverythingStatus {
    pub(crate) replicas: i32,
    pub(crate) selector: Option<String>,
}

/// The desired state.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "all.example.com",
    version = "v1alpha1",
    kind = "Everything",
    plural = "everythings",
    root = "OldEverything",
    shortname = "ev",
    category = "all",
    doc = "Everything is a kind with all markers.",
    served = false,
    storage = false
)]
pub(crate) struct OldEverythingSpec {
    pub(crate) number: i32,
}
