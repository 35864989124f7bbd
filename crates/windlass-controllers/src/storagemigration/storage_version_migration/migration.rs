//! A migration: the parts of the object that the controller reads and writes.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube_client::api::{Api, PostParams};
use kube_core::{DynamicObject, ResourceExt};
use serde_json::{Value, json};
use windlass_runtime::{Context, Error, Result};

use crate::component::{self, KUBE_CONTROLLER_MANAGER};

pub(super) const RUNNING: &str = "Running";
pub(super) const SUCCEEDED: &str = "Succeeded";
pub(super) const FAILED: &str = "Failed";
/// The reason of the condition [`RUNNING`] of a running migration.
pub(super) const IS_RUNNING: &str = "MigrationRunning";
const HAS_FAILED: &str = "StorageVersionMigrationFailed";

/// A StorageVersionMigration.
#[derive(Clone, Debug)]
pub(super) struct Migration {
    object: DynamicObject,
    pub(super) conditions: Vec<Condition>,
}

impl Migration {
    pub(super) fn of(object: &DynamicObject) -> Self {
        let conditions = object.data["status"]["conditions"].clone();
        Self { object: object.clone(), conditions: serde_json::from_value(conditions).unwrap_or_default() }
    }

    pub(super) fn name(&self) -> String {
        self.object.name_any()
    }

    /// Returns the time of the creation.
    pub(super) fn created(&self) -> Option<Timestamp> {
        self.object.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }

    pub(super) fn generation(&self) -> Option<i64> {
        self.object.metadata.generation
    }

    pub(super) fn group(&self) -> &str {
        self.object.data["spec"]["resource"]["group"].as_str().unwrap_or_default()
    }

    pub(super) fn plural(&self) -> &str {
        self.object.data["spec"]["resource"]["resource"].as_str().unwrap_or_default()
    }

    /// Returns `PLURAL.GROUP`, which is also the name of a definition of the resource.
    pub(super) fn resource(&self) -> String {
        format!("{}.{}", self.plural(), self.group())
    }

    /// Returns the resource version at which the list of the objects ends; `None` before the migration has begun.
    pub(super) fn resource_version(&self) -> Option<&str> {
        self.object.data["status"]["resourceVersion"].as_str().filter(|version| !version.is_empty())
    }

    pub(super) fn set_resource_version(&mut self, version: &str) {
        self.object.data["status"]["resourceVersion"] = json!(version);
    }

    pub(super) fn is_running(&self) -> bool {
        self.is_true(RUNNING)
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.is_true(SUCCEEDED)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_succeeded() || self.is_true(FAILED)
    }

    fn is_true(&self, kind: &str) -> bool {
        self.conditions.iter().any(|condition| condition.type_ == kind && condition.status == "True")
    }

    /// Sets a condition. The time changes with the status.
    pub(super) fn set(&mut self, next: Condition) {
        match self.conditions.iter_mut().find(|condition| condition.type_ == next.type_) {
            Some(old) if old.status == next.status => {
                let since = old.last_transition_time.clone();
                *old = Condition { last_transition_time: since, ..next };
            }
            Some(old) => *old = next,
            None => self.conditions.push(next),
        }
    }

    /// Sets a condition to `True`.
    pub(super) fn set_true(
        &mut self,
        cx: &Context<()>,
        kind: &str,
        reason: &str,
        message: impl Into<String>,
    ) {
        self.set(condition(cx, kind, "True", reason, message));
    }

    /// Sets the condition of a migration that cannot go on.
    pub(super) fn set_failed(&mut self, cx: &Context<()>, why: impl Into<String>) {
        self.set_true(cx, FAILED, HAS_FAILED, why);
    }

    /// Writes the status.
    pub(super) async fn write_status(mut self, cx: &Context<()>) -> Result<()> {
        let status = &mut self.object.data["status"];
        if !status.is_object() {
            *status = json!({});
        }
        status["conditions"] = serde_json::to_value(&self.conditions).unwrap_or(Value::Null);
        let all: Api<DynamicObject> = Api::all_with(cx.client().clone(), &super::resource());
        let parameters: PostParams = component::post(KUBE_CONTROLLER_MANAGER);
        all.replace_status(&self.object.name_any(), &parameters, &self.object)
            .await
            .map(|_| ())
            .map_err(Error::from)
    }
}

pub(super) fn condition(
    cx: &Context<()>,
    kind: &str,
    status: &str,
    reason: &str,
    message: impl Into<String>,
) -> Condition {
    Condition {
        last_transition_time: Time(cx.now()),
        message: message.into(),
        observed_generation: None,
        reason: reason.to_owned(),
        status: status.to_owned(),
        type_: kind.to_owned(),
    }
}
