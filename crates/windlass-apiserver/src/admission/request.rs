//! The request as webhooks and expressions see the request.

use serde_json::{Map, Value, json};

use super::attributes::{Attributes, GroupVersion};
use crate::auth::Identity;

/// Returns the fields of the request, without the objects. `kind` and `resource` are those of the version in which a webhook
/// or an expression sees the objects.
pub(super) fn fields(
    request: &Attributes<'_>,
    kind: GroupVersion<'_>,
    resource: GroupVersion<'_>,
) -> Map<String, Value> {
    let Attributes { subresource, namespace, name, .. } = *request;
    let mut fields = Map::new();
    let mut set = |field: &str, value: Value| {
        fields.insert(field.to_owned(), value);
    };
    set("kind", kind_json(kind));
    set("resource", resource_json(resource));
    set("requestKind", kind_json(request.group_version_kind()));
    set("requestResource", resource_json(request.group_version_resource()));
    for (field, text) in [
        ("subResource", subresource),
        ("requestSubResource", subresource),
        ("name", name),
        ("namespace", namespace),
    ] {
        if !text.is_empty() {
            set(field, text.into());
        }
    }
    set("operation", request.operation.name().into());
    set("userInfo", user_info(request.user));
    set("dryRun", request.dry_run.into());
    set("options", request.options.clone());
    fields
}

fn kind_json(kind: GroupVersion<'_>) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.name})
}

fn resource_json(resource: GroupVersion<'_>) -> Value {
    json!({"group": resource.group, "version": resource.version, "resource": resource.name})
}

fn user_info(user: &Identity) -> Value {
    let mut info = Map::new();
    info.insert("username".to_owned(), user.name().into());
    if let Some(uid) = user.uid() {
        info.insert("uid".to_owned(), uid.into());
    }
    if !user.groups().is_empty() {
        info.insert("groups".to_owned(), user.groups().into());
    }
    if !user.extra().is_empty() {
        info.insert("extra".to_owned(), json!(user.extra()));
    }
    Value::Object(info)
}
