//! Derive macros of Windlass. The crate `windlass` re-exports them.
#![forbid(unsafe_code)]

mod attributes;
mod case;
mod configuration;
mod shape;

#[cfg(test)]
mod tests;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes the apply configuration of a type: a struct with the same fields, all optional, of which only those that were set are sent.
///
/// Derive it for the spec of a `#[derive(CustomResource)]`, for its status, and for every struct in them:
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
/// # What it makes
///
/// - `WebsiteSpecApplyConfiguration` with a public field and a setter for each field, and `WebsiteSpec::apply()`, which makes an empty
///   one. A setter of a list or map adds to it.
/// - For the struct with `#[kube(kind = "Website", …)]`: `WebsiteApplyConfiguration`, and `Website::apply(name, namespace)`, or
///   `Website::apply(name)` for a kind without namespaces. It has `spec`, `status` and the setters of the spec.
/// - An enum, a tuple struct, and a struct marked `#[apply(atomic)]` are sent as they are, as a whole. They implement `Serialize`.
///
/// # Attributes
///
/// | attribute | effect |
/// |---|---|
/// | `#[apply(atomic)]` on a field | the field is sent as a whole; its type implements `Serialize` and `Clone` |
/// | `#[apply(atomic)]` on a type | the type is sent as a whole wherever it is a field |
/// | `#[apply(crate = "…")]` on a type | the path of `windlass_apply`; default: `::windlass::apply` |
/// | `#[serde(rename)]`, `rename_all`, `flatten`, `skip`, `skip_serializing` | as for serde |
///
/// `#[serde(with)]` and `serialize_with` are errors: the configuration would send something else.
#[proc_macro_derive(ApplyConfiguration, attributes(apply, kube, serde))]
pub fn apply_configuration(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    configuration::expand(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}
