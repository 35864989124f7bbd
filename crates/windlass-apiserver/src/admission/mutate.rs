//! `MutatingAdmissionWebhook`: lets webhooks change an object before it is written.

use std::time::Instant;

use serde_json::Value;
use windlass_schema::{go_quote, json_type};

use super::configuration::Hook;
use super::matching::Shown;
use super::review::Review;
use super::{Attributes, CallError, Objects, Surroundings, Webhooks, failure, matching, versions};
use crate::meta;
use crate::resource::{Resource, drop_malformed_metadata};
use crate::wire::ApiError;
use crate::wire::patch::{JsonPatch, Limits};

/// The webhooks that are called a second time, because the object changed after the first call.
#[derive(Default)]
pub(crate) struct Reinvocation {
    rounds: usize,
    /// True if a webhook changed the object.
    is_needed: bool,
    /// The indexes of webhooks that were called and want to be called again.
    called: Vec<usize>,
    /// The webhooks of the first round that saw an older object.
    outdated: Vec<usize>,
    /// The object after the first round, if there is a second round.
    output: Option<Value>,
}

impl Reinvocation {
    /// Returns whether the plugins run a second time.
    pub(crate) fn is_needed(&self) -> bool {
        self.is_needed
    }

    fn begin(&mut self, object: Option<&Value>) {
        if self.rounds > 0 && self.output.as_ref() != object {
            // A built-in plugin changed the object in between.
            self.outdated.append(&mut self.called);
        }
        self.rounds += 1;
    }

    fn skips(&self, hook: usize) -> bool {
        self.rounds > 1 && !self.outdated.contains(&hook)
    }

    fn called(&mut self, hook: usize, is_reinvoked: bool, has_changed: bool) {
        if has_changed {
            self.outdated.append(&mut self.called);
            self.is_needed = true;
        }
        if is_reinvoked {
            self.called.push(hook);
        }
    }

    fn end(&mut self, object: Option<&Value>) {
        if self.is_needed {
            self.output = object.cloned();
        }
    }
}

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
        rounds.begin(object.as_deref());
        // The object stays in the version of the last webhook until a webhook needs another version.
        let mut last = Shown::AsRequested;
        for (index, hook) in hooks.iter().enumerate() {
            let objects = Objects { new: object.as_deref(), old };
            let Some(shown) = matching::matches(hook, request, objects, around)? else { continue };
            if rounds.skips(index) {
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
            rounds.called(index, hook.is_reinvoked, has_changed);
            if let (Some(object), Some(changed)) = (&mut object, changed) {
                **object = changed;
            }
            last = shown;
        }
        if let Some(object) = &mut object {
            versions::convert_in_place(request, object, last.resource(request), request.resource).await?;
            if rounds.is_needed && request.resource.is_custom() && request.is_of_resource() {
                windlass_schema::prune(request.resource.schema.get(), object);
            }
        }
        rounds.end(object.as_deref());
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
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    for field in ["apiVersion", "kind"] {
        // A kind that the patch removed is the kind in the request.
        if !shown.is_custom() && text(&changed, field).is_empty() {
            changed[field] = object[field].clone();
        }
    }
    let (version, kind) = (text(&changed, "apiVersion"), text(&changed, "kind"));
    if !shown.is_custom() && (version != text(object, "apiVersion") || kind != text(object, "kind")) {
        let why = format!("converting ({version}.{kind}) to ({}): unknown conversion", shown.go_type());
        return Err(CallError::Refused(ApiError::unexplained(why)));
    }
    if request.is_of_resource() {
        if shown.is_custom() {
            drop_malformed_metadata(&mut changed);
            windlass_schema::default_missing(shown.schema.get(), &mut changed);
        } else {
            shown.check_fields(&changed).map_err(internal)?;
            shown.default_and_prune(&mut changed);
        }
        meta::drop_empty(&mut changed);
    }
    Ok(Some(changed))
}
