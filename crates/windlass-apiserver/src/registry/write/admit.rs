//! Admission: the plugins of the server, and the webhooks.

use serde_json::Value;

use super::Change;
use super::guard::may_create;
use crate::admission::{Reinvocation, plugins};
use crate::auth::Attributes;
use crate::meta;
use crate::registry::Call;
use crate::store::View;
use crate::verb::Verb;
use crate::wire::ApiError;

/// Runs mutating admission: the built-in plugins, and then webhooks. If a webhook changed the object, runs
/// the plugins again, and the webhooks that ask for a second call. At last, checks the rights of the user for the result.
pub(in crate::registry) async fn mutate(
    call: &mut Call<'_>,
    object: &mut Value,
    old: Option<&Value>,
) -> Result<(), ApiError> {
    let mut rounds = Reinvocation::default();
    run_plugins(call, object, old).await?;
    call.mutate(object, old, &mut rounds).await?;
    if rounds.is_needed() {
        run_plugins(call, object, old).await?;
        call.mutate(object, old, &mut rounds).await?;
    }
    authorize(call, object, old)
}

/// Checks the rights of the user for an object, such as the rights that a role grants.
fn authorize(call: &Call<'_>, object: &Value, old: Option<&Value>) -> Result<(), ApiError> {
    if !call.route.subresource.is_empty() {
        return Ok(());
    }
    let view = call.state.store.view();
    call.resource.strategy.admission.authorize(&call.context(&view), object, old)
}

/// Runs the built-in plugins.
async fn run_plugins(call: &Call<'_>, object: &mut Value, old: Option<&Value>) -> Result<(), ApiError> {
    if !call.route.subresource.is_empty() {
        return Ok(());
    }
    let view = call.state.store.view();
    if old.is_none() {
        let names = [meta::name(object), meta::text(object, "generateName")];
        may_create(&view, &call.resource, &call.route.namespace, names)?;
    }
    if plugins::Write::concerns(&call.resource) {
        Box::pin(call.plugin_write().mutate(object, old)).await?;
    }
    call.resource.strategy.admission.mutate(&call.context(&view), object, old)
}

/// Runs validating admission of a new object: the plugins of the kind, the right to create by another verb, and the webhooks.
pub(super) async fn validate_create(call: &mut Call<'_>, view: &View, new: &Value) -> Result<(), ApiError> {
    call.resource.strategy.admission.validate_admission(&call.context(view), new, None)?;
    if call.route.verb != Verb::Create {
        authorize_create(call)?;
    }
    call.validate(new, None).await
}

/// Runs validating admission of a changed object: the plugins of the kind, and the webhooks.
pub(super) async fn validate_update(
    call: &mut Call<'_>,
    view: &View,
    change: &mut impl Change,
    new: &Value,
    old: &Value,
) -> Result<(), ApiError> {
    call.resource.strategy.admission.validate_admission(&call.context(view), new, Some(old))?;
    change.validate(call, new, old).await
}

/// Authorises the creation of an object by an update or an apply.
fn authorize_create(call: &Call<'_>) -> Result<(), ApiError> {
    let (route, state) = (&call.route, call.state);
    let create = Attributes {
        verb: "create",
        group: &route.group,
        resource: &route.resource,
        subresource: &route.subresource,
        namespace: &route.namespace,
        name: &route.name,
        path: None,
    };
    state.authorizer.authorize(&state.store, call.identity, &create)
}
