//! The checks that users grant only rights that they have.

use serde_json::Value;
use windlass_store::{Attributes, Identity, RoleRef, Rule, object_meta as meta};
use windlass_wire::{ApiError, GroupResource};

use super::GROUP;
use crate::kind::WriteContext;

/// Checks a role that is created, or changed from `old`.
///
/// # Errors
/// 403 if the user neither holds the rights of the role nor may escalate the role.
pub(super) fn of_role(
    cx: &WriteContext<'_>,
    resource: &str,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let escalate = Attributes {
        verb: "escalate",
        group: GROUP,
        resource,
        namespace: meta::namespace(object),
        name: cx.name,
        ..Attributes::default()
    };
    if cx.identity.is_in(Identity::MASTERS)
        || cx.authorizer.allows(cx.store, cx.identity, &escalate)
        || old.is_some_and(|old| is_upkeep(object, old))
    {
        return Ok(());
    }
    let resource = GroupResource::new(GROUP, resource);
    let (namespace, name) = (meta::namespace(object), meta::name(object));
    let confirm =
        |rules: &[Rule]| cx.authorizer.confirm_no_escalation(cx.store, cx.identity, namespace, rules);
    confirm(&Rule::read_all(object)).map_err(|why| ApiError::forbidden(&resource, name, why))?;
    if aggregates(object) || old.is_some_and(aggregates) {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        confirm(&Rule::everything()).map_err(|_| ApiError::forbidden(&resource, name, why))?;
    }
    Ok(())
}

fn aggregates(role: &Value) -> bool {
    let selectors = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array);
    selectors.is_some_and(|selectors| !selectors.is_empty())
}

/// Checks a binding that is created, or changed from `old`.
///
/// # Errors
/// 403 if the user neither holds the rights of the role nor may bind the role, and 404 for a missing role.
pub(super) fn of_binding(cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    if cx.identity.is_in(Identity::MASTERS) || old.is_some_and(|old| is_upkeep(object, old)) {
        return Ok(());
    }
    let role = RoleRef::of(object);
    let (namespace, name) = (meta::namespace(object), meta::name(object));
    let resource = match role.kind.as_str() {
        "ClusterRole" => "clusterroles",
        "Role" => "roles",
        kind => {
            let kind = windlass_schema::go_quote(kind);
            return Err(ApiError::internal(format!("unsupported role reference kind: {kind}")));
        }
    };
    let group = object.pointer("/roleRef/apiGroup").and_then(Value::as_str).unwrap_or_default();
    let bind =
        Attributes { verb: "bind", group, resource, namespace, name: &role.name, ..Attributes::default() };
    if cx.authorizer.allows(cx.store, cx.identity, &bind) {
        return Ok(());
    }
    if role.kind == "Role" && namespace.is_empty() {
        return Err(ApiError::bad_request("Namespace parameter required."));
    }
    let rules = cx.authorizer.rules_of(cx.store, &role, namespace);
    let written = if namespace.is_empty() { "clusterrolebindings" } else { "rolebindings" };
    let written = GroupResource::new(GROUP, written);
    // The real server names the resource of the request here, too.
    let rules = rules.ok_or_else(|| ApiError::not_found(&written, &role.name))?;
    let held = cx.authorizer.confirm_no_escalation(cx.store, cx.identity, namespace, &rules);
    held.map_err(|why| ApiError::forbidden(&written, name, why))
}

/// Returns whether an update changes only what the garbage collector has to change: owners and finalizers.
fn is_upkeep(object: &Value, old: &Value) -> bool {
    let kept = |value: &Value| {
        let mut kept = value.clone();
        for field in ["ownerReferences", "finalizers", "selfLink", "managedFields"] {
            meta::set(&mut kept, field, None);
        }
        kept
    };
    kept(object) == kept(old)
}
