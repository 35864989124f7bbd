//! Webhook configurations, read once and used for every write.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;
use windlass_cel::admission::Variables;

use super::calls::{Call, Calls};
use super::conditions::Conditions;
use super::criteria::{Criteria, texts};
use super::scene::{Deadline, Scene};
use super::trace::Trace;
use super::{Attributes, Objects, Operation, Surroundings, versions};
use crate::resource::Resource;
use crate::store::{ResourceId, View};
use crate::webhook::Endpoint;
use crate::wire::ApiError;

const DEFAULT_TIMEOUT: u64 = 10;

/// The identity of a webhook, while configurations change.
pub(super) type HookId = (String, String, usize);

/// A webhook of a configuration.
pub(super) struct Hook {
    /// The identity among all webhooks: the names of the configuration and the webhook, and the number of earlier webhooks of the
    /// same name in the configuration.
    pub(super) id: HookId,
    pub(super) name: String,
    pub(super) endpoint: Endpoint,
    pub(super) criteria: Criteria,
    /// `None` without match conditions.
    pub(super) conditions: Option<Conditions>,
    /// True if a request goes on if the webhook cannot be called.
    pub(super) ignores_failure: bool,
    pub(super) timeout: Duration,
    pub(super) allows_dry_run: bool,
    /// True if the webhook is called again after a later webhook changed the object.
    pub(super) is_reinvoked: bool,
    /// The version of reviews that the webhook accepts and this server knows.
    pub(super) review_version: Option<&'static str>,
}

impl Hook {
    /// Returns whether the match conditions hold for a request. The new object is in the first version; the conditions see
    /// all objects in the second version.
    ///
    /// # Errors
    /// 403 if a condition fails and the failure policy is `Fail`.
    pub(super) async fn is_wanted(
        &self,
        request: &Attributes<'_>,
        objects: Objects<'_>,
        (from, shown): (&Resource, &Resource),
        around: Surroundings<'_>,
        (calls, step): (&Calls, &'static str),
    ) -> Result<bool, ApiError> {
        let Some(conditions) = &self.conditions else { return Ok(true) };
        let new = match objects.new {
            Some(new) => Some(versions::convert(request, new, from, shown).await?),
            None => None,
        };
        let old = match objects.old {
            Some(old) => Some(versions::convert(request, old, request.resource, shown).await?),
            None => None,
        };
        let objects = Objects { new: new.as_deref(), old: old.as_deref() };
        let scene = Scene::of_conditions(request, shown, around);
        let input = scene.conditions(objects, &Value::Null);
        let holds = conditions.hold(&input, &Variables::default(), Deadline::start(), Trace::default());
        if holds != Ok(true) {
            calls.count_conditions(&self.call(step, request.operation), holds.is_err());
        }
        match holds {
            Ok(holds) => Ok(holds),
            Err(why) if self.ignores_failure => {
                tracing::warn!(webhook = self.name, "ignored a match condition that failed: {why}");
                Ok(false)
            }
            Err(why) => Err(ApiError::forbidden(&request.resource.group_resource(), request.name, why)),
        }
    }

    /// Returns a call of the webhook, to be counted.
    pub(super) fn call(&self, step: &'static str, operation: Operation) -> Call<'_> {
        Call { webhook: &self.name, step, operation, ignores_failure: self.ignores_failure }
    }
}

/// Returns the webhooks of all configurations, sorted by the name of the configuration, and then in
/// configuration order.
pub(super) fn hooks(view: &View, configurations: &ResourceId) -> Vec<Hook> {
    let mut hooks = Vec::new();
    for (key, stored) in view.range(configurations, None) {
        let configuration = stored.value();
        let mut named: HashMap<&str, usize> = HashMap::new();
        for webhook in configuration["webhooks"].as_array().into_iter().flatten() {
            let name = webhook["name"].as_str().unwrap_or_default();
            let earlier = named.entry(name).or_default();
            hooks.push(hook((key.to_string(), name.to_owned(), *earlier), webhook));
            *earlier += 1;
        }
    }
    hooks
}

fn hook(id: HookId, webhook: &Value) -> Hook {
    let text = |field: &str| webhook[field].as_str().unwrap_or_default();
    let versions = texts(&webhook["admissionReviewVersions"]);
    let known = |version: &String| ["v1", "v1beta1"].into_iter().find(|known| known == version);
    Hook {
        name: id.1.clone(),
        id,
        endpoint: Endpoint::of(&webhook["clientConfig"]),
        criteria: Criteria::of_webhook(webhook),
        conditions: Conditions::of_webhook(webhook),
        ignores_failure: text("failurePolicy") == "Ignore",
        timeout: Duration::from_secs(webhook["timeoutSeconds"].as_u64().unwrap_or(DEFAULT_TIMEOUT)),
        allows_dry_run: matches!(text("sideEffects"), "None" | "NoneOnDryRun"),
        is_reinvoked: text("reinvocationPolicy") == "IfNeeded",
        review_version: versions.iter().find_map(known),
    }
}
