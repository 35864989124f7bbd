//! The checks that users may read the parameters of the policies and bindings that the users write.

use serde_json::Value;
use windlass_schema::{Catalog, FieldError};

use super::GROUP;
use windlass_store::{Attributes, Identity, ResourceId};

use crate::json::{list_at, text_at};
use crate::kind::WriteContext;

const ALL: &str = "*";

/// Checks that the user may read all objects of the kind of a policy's parameters.
pub(super) fn of_policy(cx: &WriteContext<'_>, policy: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let kind = &policy["spec"]["paramKind"];
    let is_kept = old.is_some_and(|old| old["spec"]["paramKind"] == *kind);
    if !kind.is_object() || is_kept || cx.identity.is_in(Identity::MASTERS) {
        return Vec::new();
    }
    let (group, plural) = resource_of(cx, kind);
    let read = Attributes {
        verb: "get",
        group: &group,
        resource: plural.as_deref().unwrap_or(ALL),
        namespace: ALL,
        name: ALL,
        ..Attributes::default()
    };
    if cx.authorizer.allows(cx.store, cx.identity, &read) {
        return Vec::new();
    }
    let (user, name) = (go_user(cx.identity), text_at(kind, "/kind"));
    let version = text_at(kind, "/apiVersion");
    let detail = format!(
        "user {user} must have \"get\" permission on all objects of the referenced paramKind (kind={name}, apiVersion={version})"
    );
    vec![FieldError::forbidden("spec.paramKind", detail)]
}

/// Checks that the user may read the parameters of a binding of policies of the resource `policies`.
pub(super) fn of_binding(cx: &WriteContext<'_>, binding: &Value, policies: &str) -> Vec<FieldError> {
    let reference = &binding["spec"]["paramRef"];
    if !reference.is_object() || cx.identity.is_in(Identity::MASTERS) {
        return Vec::new();
    }
    let name = text_at(binding, "/spec/policyName");
    let policy = cx.view.get(&ResourceId::new(GROUP, policies), name).map(|stored| stored.value());
    let kind = policy.as_ref().map(|policy| &policy["spec"]["paramKind"]).filter(|kind| kind.is_object());
    let (group, plural) = kind.map_or_else(|| (ALL.to_owned(), None), |kind| resource_of(cx, kind));
    let object = text_at(reference, "/name");
    let verb = if object.is_empty() { "list" } else { "get" };
    let read = Attributes {
        verb,
        group: &group,
        resource: plural.as_deref().unwrap_or(ALL),
        namespace: text_at(reference, "/namespace"),
        name: object,
        ..Attributes::default()
    };
    if cx.authorizer.allows(cx.store, cx.identity, &read) {
        return Vec::new();
    }
    let user = go_user(cx.identity);
    let everywhere = format!(
        "to determine minimum required permissions and user {user} does not have \"{verb}\" permission for all groups, versions and resources"
    );
    let detail = match (&policy, kind, plural) {
        (None, ..) => format!("unable to get policy {name} {everywhere}"),
        (_, Some(kind), None) => {
            let (version, kind) = (text_at(kind, "/apiVersion"), text_at(kind, "/kind"));
            format!(
                "unable to resolve paramKind &ParamKind{{APIVersion:{version},Kind:{kind},}} {everywhere}"
            )
        }
        // The real server confuses the user and the verb of mutating policies.
        _ if policies.starts_with("mutating") => {
            format!("user {verb} does not have \"{user}\" permission on the object referenced by paramRef")
        }
        _ => format!("user {user} does not have \"{verb}\" permission on the object referenced by paramRef"),
    };
    vec![FieldError::forbidden("spec.paramRef", detail)]
}

/// Returns the group of a kind, and the plural name if the kind is served.
fn resource_of(cx: &WriteContext<'_>, kind: &Value) -> (String, Option<String>) {
    let version = text_at(kind, "/apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = text_at(kind, "/kind");
    let catalog = Catalog::builtin();
    let mut versions = catalog.group_versions().iter();
    let found = versions.find(|found| *found.group == *group && *found.version == *version);
    let resources = found.into_iter().flat_map(|found| &found.resources);
    let mut plurals =
        resources.filter(|resource| *resource.kind.kind == *kind).map(|found| found.name.to_string());
    (group.to_owned(), plurals.next().or_else(|| custom_resource_of(cx, group, version, kind)))
}

fn custom_resource_of(cx: &WriteContext<'_>, group: &str, version: &str, kind: &str) -> Option<String> {
    let definitions = ResourceId::new("apiextensions.k8s.io", "customresourcedefinitions");
    let mut definitions = cx.view.range(&definitions, None).map(|(_, stored)| stored.value());
    let is_served = |definition: &Value| {
        let spec = &definition["spec"];
        let mut versions = list_at(spec, "/versions").iter();
        text_at(spec, "/group") == group
            && text_at(spec, "/names/kind") == kind
            && versions.any(|found| found["served"] == true && text_at(found, "/name") == version)
    };
    let definition = definitions.find(is_served)?;
    Some(text_at(&definition, "/spec/names/plural").to_owned())
}

/// Returns a user as Go prints the user.
fn go_user(user: &Identity) -> String {
    let extra: Vec<String> =
        user.extra().iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    let (name, uid) = (user.name(), user.uid().unwrap_or_default());
    format!("&{{{name} {uid} [{}] map[{}]}}", user.groups().join(" "), extra.join(" "))
}
