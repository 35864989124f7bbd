//! `ValidatingAdmissionWebhook`: asks webhooks whether a write may happen.

use std::borrow::Cow;
use std::time::Instant;

use futures::future::join_all;
use serde_json::Value;

use super::review::Review;
use super::{Attributes, CallError, Objects, Surroundings, Webhooks, failure, matching, versions};
use crate::resource::Resource;
use crate::wire::ApiError;

impl Webhooks {
    /// Calls all matching validating webhooks concurrently. Adds the warnings of the webhooks.
    ///
    /// # Errors
    ///
    /// The first error in the order of the webhooks.
    pub(crate) async fn validate(
        &self,
        request: &Attributes<'_>,
        objects: Objects<'_>,
        around: Surroundings<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        let hooks = self.validating.get(around.view);
        let mut wanted = Vec::new();
        for hook in hooks.iter() {
            let Some(shown) = matching::matches(&hook.criteria, request, objects, around)? else { continue };
            let versions = (request.resource, shown.resource(request));
            let counted = (&self.calls, "validating");
            if hook.conditions.is_some()
                && !Box::pin(hook.is_wanted(request, objects, versions, around, counted)).await?
            {
                continue;
            }
            wanted.push((hook, shown));
        }
        let mut versioned = Vec::with_capacity(wanted.len());
        for (_, shown) in &wanted {
            let resource = shown.resource(request);
            let new = shown_as(request, objects.new, resource).await?;
            let old = shown_as(request, objects.old, resource).await?;
            versioned.push((resource, new, old));
        }
        let calls = wanted.iter().zip(&versioned).map(|((hook, _), (shown, new, old))| async move {
            let review = Review {
                hook,
                request,
                shown,
                objects: Objects { new: new.as_deref(), old: old.as_deref() },
                uid: around.env.uid(),
                is_mutating: false,
            };
            let mut warnings = Vec::new();
            let since = Instant::now();
            let answer = review.send(&self.clients, &mut warnings).await;
            let call = hook.call("validating", request.operation);
            self.calls.count(&call, answer.as_ref().map(|_| ()), since.elapsed());
            (answer, warnings)
        });
        let mut first = Ok(());
        for ((hook, _), (answer, told)) in wanted.iter().zip(join_all(calls).await) {
            warnings.extend(told);
            let error = match answer {
                Ok(_) => continue,
                Err(CallError::Refused(error) | CallError::Denied(error)) => error,
                Err(CallError::Failed { why, .. }) if hook.ignores_failure => {
                    tracing::warn!(webhook = hook.name, "ignored a webhook that failed: {why}");
                    continue;
                }
                Err(CallError::Failed { why, .. }) => failure::failed(&hook.name, &why),
            };
            if first.is_ok() {
                first = Err(error);
            }
        }
        first
    }
}

/// Returns an object of the request in the version of `resource`.
async fn shown_as<'a>(
    request: &Attributes<'_>,
    object: Option<&'a Value>,
    resource: &Resource,
) -> Result<Option<Cow<'a, Value>>, ApiError> {
    match object {
        Some(object) => versions::convert(request, object, request.resource, resource).await.map(Some),
        None => Ok(None),
    }
}
