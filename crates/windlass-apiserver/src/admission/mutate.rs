//! `MutatingAdmissionWebhook`: lets webhooks change an object before it is written.

use std::time::Instant;

use serde_json::Value;
use windlass_schema::{go_quote, json_type};

use super::configuration::Hook;
use super::matching::Shown;
use super::review::Review;
use super::{
    Attributes, CallError, Objects, Reinvocation, Surroundings, Webhooks, failure, matching, versions,
};
use crate::meta;
use crate::resource::{Resource, drop_malformed_metadata};
use crate::wire::ApiError;
use crate::wire::patch::{JsonPatch, Limits};

impl Webhooks {
    /// Calls the matching mutating webhooks in sequence. Adds the warnings of the webhooks.
    ///
    /// `object` is `None` for a deletion.
    ///
    /// # Errors
    ///
    /// A webhook denies the request, or a webhook with the failure policy `Fail` fails.
    pub(crate) async fn mutate(
        &self,
        request: &Attributes<'_>,
        mut object: Option<&mut Value>,
        old: Option<&Value>,
        around: Surroundings<'_>,
        (rounds, warnings): (&mut Reinvocation, &mut Vec<String>),
    ) -> Result<(), ApiError> {
        let hooks = self.mutating.get(around.view);
        rounds.webhooks.begin(object.as_deref());
        // The object stays in the version of the last webhook until a webhook needs another version.
        let mut last = Shown::AsRequested;
        for hook in hooks.iter() {
            let objects = Objects { new: object.as_deref(), old };
            let Some(shown) = matching::matches(&hook.criteria, request, objects, around)? else { continue };
            let versions = (last.resource(request), shown.resource(request));
            let counted = (&self.calls, "admit");
            if hook.conditions.is_some()
                && !Box::pin(hook.is_wanted(request, objects, versions, around, counted)).await?
            {
                continue;
            }
            if rounds.webhooks.skips(&hook.id) {
                continue;
            }
            let (from, to) = (last.resource(request), shown.resource(request));
            if let Some(object) = &mut object {
                versions::expect_version(request, object, from, to).map_err(ApiError::internal)?;
                versions::convert_in_place(request, object, from, to).await.map_err(ApiError::internal)?;
            }
            let old = match old {
                Some(old) => {
                    let old = versions::convert(request, old, request.resource, to).await;
                    Some(old.map_err(ApiError::internal)?)
                }
                None => None,
            };
            let objects = Objects { new: object.as_deref(), old: old.as_deref() };
            let uid = around.env.uid();
            let review = Review { hook, request, shown: to, objects, uid, is_mutating: true };
            // Boxed: few requests meet a webhook, and the futures of other requests stay small.
            let since = Instant::now();
            let patch = Box::pin(review.send(&self.clients, warnings)).await;
            let changed = patch.and_then(|patch| patched(hook, request, to, object.as_deref(), &patch));
            let call = hook.call("admit", request.operation);
            self.calls.count(&call, changed.as_ref().map(|_| ()), since.elapsed());
            let changed = match changed {
                Ok(changed) => changed,
                Err(CallError::Refused(error) | CallError::Denied(error)) => return Err(error),
                Err(CallError::Failed { why, .. }) if hook.ignores_failure => {
                    tracing::warn!(webhook = hook.name, "ignored a webhook that failed: {why}");
                    None
                }
                Err(CallError::Failed { why, .. }) => return Err(failure::failed(&hook.name, &why)),
            };
            let has_changed = changed.is_some() && changed.as_ref() != object.as_deref();
            if has_changed {
                rounds.webhooks.outdate();
                rounds.require();
            }
            if hook.is_reinvoked {
                rounds.webhooks.add(hook.id.clone());
            }
            if let (Some(object), Some(changed)) = (&mut object, changed) {
                **object = changed;
            }
            last = shown;
        }
        if let Some(object) = &mut object {
            versions::convert_in_place(request, object, last.resource(request), request.resource).await?;
            if rounds.is_needed() && request.resource.is_custom() && request.is_of_resource() {
                windlass_schema::prune(request.resource.schema.get(), object);
            }
        }
        if rounds.is_needed() {
            rounds.webhooks.end(object.as_deref());
        }
        Ok(())
    }
}

/// Returns the object after the patch of a webhook; `None` if there is no patch.
fn patched(
    hook: &Hook,
    request: &Attributes<'_>,
    shown: &Resource,
    object: Option<&Value>,
    patch: &[u8],
) -> Result<Option<Value>, CallError> {
    if patch.is_empty() {
        return Ok(None);
    }
    let undecodable =
        |why: String| CallError::unusable(format!("received undecodable patch in webhook response: {why}"));
    let (operations, _) = crate::wire::from_json_with_duplicates(patch).map_err(undecodable)?;
    let patch = JsonPatch::read(operations.clone(), false).map_err(undecodable)?;
    if patch.is_empty() {
        return Ok(None);
    }
    let internal = |why: String| CallError::Refused(ApiError::internal(why));
    let Some(object) = object else {
        return Err(internal(format!(
            "admission webhook {} attempted to modify the object, which is not supported for this operation",
            go_quote(&hook.name)
        )));
    };
    let changed = patch.apply(object.clone(), &Limits::default());
    let mut changed = changed.map_err(|error| internal(failure::not_applied(&error, &operations)))?;
    if !changed.is_object() {
        let why = format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value",
            json_type(&changed)
        );
        return Err(internal(why));
    }
    settle(request, shown, object, &mut changed).map_err(CallError::Refused)?;
    Ok(Some(changed))
}

/// Completes an object that a webhook or a policy has changed from `object`: sets a removed kind, checks and prunes the
/// fields, and sets defaults.
pub(super) fn settle(
    request: &Attributes<'_>,
    shown: &Resource,
    object: &Value,
    changed: &mut Value,
) -> Result<(), ApiError> {
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    for field in ["apiVersion", "kind"] {
        // A kind that the patch removed is the kind in the request.
        if !shown.is_custom() && text(changed, field).is_empty() {
            changed[field] = object[field].clone();
        }
    }
    let (version, kind) = (text(changed, "apiVersion"), text(changed, "kind"));
    if !shown.is_custom() && (version != text(object, "apiVersion") || kind != text(object, "kind")) {
        let why = format!("converting ({version}.{kind}) to ({}): unknown conversion", shown.go_type());
        return Err(ApiError::unexplained(why));
    }
    if request.is_of_resource() {
        if shown.is_custom() {
            drop_malformed_metadata(changed);
            windlass_schema::default_missing(shown.schema.get(), changed);
        } else {
            shown.check_fields(changed).map_err(ApiError::internal)?;
            shown.default_and_prune(changed);
        }
        meta::drop_empty(changed);
    }
    Ok(())
}
