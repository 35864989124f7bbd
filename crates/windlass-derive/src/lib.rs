//! Derive macros of Windlass. The crate `windlass` re-exports them.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod configuration;
mod schema;

mod attributes;
mod shape;

mod case;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Derives the apply configuration of a type: a struct with the same fields, all optional. Only fields that
/// were set are sent.
///
/// Derive the trait for the spec and the status of a `#[derive(CustomResource)]`, and for every struct
/// inside:
///
/// ```ignore
/// #[derive(CustomResource, ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug)]
/// #[kube(group = "example.com", version = "v1", kind = "Website", namespaced, status = "WebsiteStatus")]
/// pub struct WebsiteSpec {
///     pub replicas: u32,
///     pub hosts: Vec<String>,
/// }
///
/// #[derive(ApplyConfiguration, Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
/// #[serde(rename_all = "camelCase")]
/// pub struct WebsiteStatus {
///     pub ready_replicas: u32,
/// }
///
/// cx.apply(&Website::apply("a", "default").label("app", "a").replicas(3)).await?;
/// cx.apply_status(&Website::apply("a", "default").status(WebsiteStatus::apply().ready_replicas(3))).await?;
/// ```
///
/// # Output
///
/// - `WebsiteSpecApplyConfiguration` with a public field and a setter for each field, and
///   `WebsiteSpec::apply()`, which returns an empty configuration. A setter of a list or map adds to the list
///   or map.
/// - For the struct with `#[kube(kind = "Website", …)]`: `WebsiteApplyConfiguration`, and
///   `Website::apply(name, namespace)`, or `Website::apply(name)` for a kind without namespaces. The
///   configuration has `spec`, `status` and the setters of the spec.
/// - An enum, a tuple struct, and a struct marked `#[apply(atomic)]` are sent as a whole, and implement
///   `Serialize`.
///
/// # Attributes
///
/// | attribute | effect |
/// |---|---|
/// | `#[apply(atomic)]` on a field | the field is sent as a whole; the type implements `Serialize` and `Clone` |
/// | `#[apply(atomic)]` on a type | fields of the type are sent as a whole |
/// | `#[apply(crate = "…")]` on a type | the path of `windlass_apply`; default: `::windlass::apply` |
/// | `#[apply(kind = "…", namespaced, status = "…")]` on a spec | the kind, for a kind that kube's macro does not derive |
/// | `#[serde(rename)]`, `rename_all`, `flatten`, `skip`, `skip_serializing` | as for serde |
///
/// `#[serde(with)]` and `serialize_with` of a field are errors, and so are `into`, `remote`, `tag` and `transparent` of a struct
/// that is not `#[apply(atomic)]`: the JSON of the configuration would differ from the JSON of the type.
#[proc_macro_derive(ApplyConfiguration, attributes(apply, kube, serde))]
pub fn apply_configuration(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    configuration::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Adds rules and descriptions to the schema of a CustomResourceDefinition: controller-gen's markers as attributes.
///
/// Write `#[schema]` above `#[derive(…)]` with `JsonSchema` or `KubeSchema`, and `#[schema(…)]` at fields. A
/// type without rules has a bare `#[schema]`: without the attribute on the type, the compiler refuses the
/// attributes of the fields with `expected non-macro attribute, found attribute macro`. The attributes become
/// `#[schemars(transform = …)]`: the crate needs only `schemars`:
///
/// ```ignore
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
/// use windlass_derive::schema;
///
/// #[schema(exactly_one_of(host, address))]
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// #[serde(rename_all = "camelCase")]
/// struct BackendSpec {
///     #[schema(max_length = 63, pattern = "^[a-z]+$", immutable)]
///     host: Option<String>,
///     address: Option<String>,
///     #[schema(minimum = 0, maximum = 100, multiple_of = 5, example = 50)]
///     weight: i32,
///     #[schema(list_type = "map", list_map_key = "name", max_items = 8)]
///     ports: Vec<Port>,
/// }
///
/// #[derive(Serialize, Deserialize, JsonSchema)]
/// struct Port {
///     name: String,
/// }
///
/// let schema = serde_json::to_value(schemars::schema_for!(BackendSpec)).unwrap();
/// assert_eq!(schema["properties"]["weight"]["multipleOf"], 5);
/// assert_eq!(schema["properties"]["host"]["x-kubernetes-validations"][0]["rule"], "self == oldSelf");
/// ```
///
/// | attribute | effect |
/// |---|---|
/// | `minimum`, `maximum = N`, `exclusive_minimum`, `exclusive_maximum`, `multiple_of = N` | bounds of a number |
/// | `min_length`, `max_length = N`, `pattern = "…"` | rules for a string |
/// | `min_items`, `max_items = N`, `items(…)` | rules for a list, and for the items |
/// | `min_properties`, `max_properties = N` | bounds of a map or struct |
/// | `enum("a", "b")`, `format = "…"`, `type = "…"`, `nullable` | as in OpenAPI |
/// | `default = JSON`, `example = JSON`, `title = "…"`, `external_docs(url = "…", description = "…")`, `no_description` | documentation |
/// | `rule("CEL", message = "…", message_expression = "…", reason = "…", field_path = "…", optional_old_self = true)`, `immutable` | rules in CEL |
/// | `exactly_one_of(a, b)`, `at_most_one_of(a, b)`, `at_least_one_of(a, b)` on a struct | how many of the fields are set |
/// | `list_type = "atomic\|set\|map"`, `list_map_key("a", "b")`, `map_type`, `struct_type = "atomic\|granular"` | how server-side apply merges |
/// | `preserve_unknown_fields`, `embedded_resource`, `int_or_string`, `schemaless` | exceptions from a structural schema |
///
/// A name, value or combination that the API server would refuse is a compile error at the marker:
///
/// ```ignore
/// #[windlass_derive::schema]
/// #[derive(schemars::JsonSchema)]
/// struct Backend {
///     #[schema(max_length = 63)] // `max_length` is for a string, and this is a number
///     weight: i32,
/// }
/// ```
#[proc_macro_attribute]
pub fn schema(arguments: TokenStream, input: TokenStream) -> TokenStream {
    let original: proc_macro2::TokenStream = input.clone().into();
    let expanded = schema::expand(arguments.into(), input.into());
    expanded.unwrap_or_else(|error| schema::with_errors(original, &error)).into()
}
