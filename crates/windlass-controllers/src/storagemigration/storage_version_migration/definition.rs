//! The begin and the end of a migration, and the condition `StorageMigrating` of the definition.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::{Api, Patch, PatchParams};
use kube_core::DynamicObject;
use kube_core::discovery::ApiResource;
use serde_json::{Value, json};
use windlass_runtime::{Action, Context, Error, Result};

use super::migration::{IS_RUNNING, Migration, RUNNING, condition};

/// The manager of the status of the definition.
const MANAGER: &str = "migration-runner-controller";
const MIGRATING: &str = "StorageMigrating";

/// Marks a migration as running.
pub(super) async fn begin(migration: &Migration, cx: &Context<()>) -> Result<Action> {
    if let Some(definition) = definition_of(migration, cx).await? {
        let message = format!("Migration {} is running", migration.name());
        let status = json!({"conditions": [migrating(&definition, cx, "True", IS_RUNNING, &message)]});
        apply(&definition, status, cx).await?;
    }
    let mut migration = migration.clone();
    migration.set_true(cx, RUNNING, IS_RUNNING, "The migration is running");
    migration.write_status(cx).await?;
    Ok(Action::done())
}

/// Marks an ended migration as not running. After a success, the definition forgets the earlier versions.
pub(super) async fn finish(migration: &Migration, cx: &Context<()>) -> Result<Action> {
    if let Some(definition) = definition_of(migration, cx).await? {
        apply(&definition, final_status(&definition, migration.has_succeeded(), cx), cx).await?;
    }
    let mut migration = migration.clone();
    let mut ended = condition(cx, RUNNING, "False", "MigrationCompleted", "Migration completed");
    ended.observed_generation = migration.generation();
    migration.set(ended);
    migration.write_status(cx).await?;
    Ok(Action::done())
}

/// Returns the status at the end. A definition that changed during the migration keeps the stored versions: objects may
/// have been written in another version.
fn final_status(definition: &Value, has_succeeded: bool, cx: &Context<()>) -> Value {
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
    let begun = conditions.into_iter().flatten().find(|condition| condition["type"] == MIGRATING);
    let is_unchanged =
        begun.is_some_and(|begun| begun["observedGeneration"] == definition["metadata"]["generation"]);
    let (reason, message) = match (has_succeeded, is_unchanged) {
        (true, true) => {
            ("MigrationSucceeded", "The migration has succeeded and the stored versions have been updated")
        }
        (true, false) => (
            "MigrationSucceeded",
            "The migration has succeeded but the stored versions have not been updated due to a generation mismatch",
        ),
        (false, _) => ("MigrationFailed", "The migration has failed"),
    };
    let mut status = json!({"conditions": [migrating(definition, cx, "False", reason, message)]});
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array);
    let stored = versions.into_iter().flatten().find(|version| version["storage"] == true);
    if let Some(stored) = stored.filter(|_| is_unchanged) {
        status["storedVersions"] = json!([stored["name"]]);
    }
    status
}

fn migrating(definition: &Value, cx: &Context<()>, status: &str, reason: &str, message: &str) -> Value {
    let mut condition = serde_json::to_value(condition(cx, MIGRATING, status, reason, message));
    if let Ok(condition) = &mut condition {
        condition["observedGeneration"] = definition["metadata"]["generation"].clone();
    }
    condition.unwrap_or_default()
}

/// Returns the definition of the resource; `None` for a resource without a definition.
async fn definition_of(migration: &Migration, cx: &Context<()>) -> Result<Option<Value>> {
    let name = migration.resource();
    if migration.group().is_empty() {
        return Ok(None);
    }
    match definitions(cx).get(&name).await.map_err(Error::from) {
        Err(error) if error.is_not_found() => Ok(None),
        found => Ok(Some(serde_json::to_value(found?).map_err(Error::from)?)),
    }
}

/// The definitions as JSON: the types of k8s-openapi may lack the field `observedGeneration` of conditions.
fn definitions(cx: &Context<()>) -> Api<DynamicObject> {
    let resource = ApiResource::erase::<CustomResourceDefinition>(&());
    Api::all_with(cx.client().clone(), &resource)
}

/// Applies the status, unless the definition has changed since the read.
async fn apply(definition: &Value, status: Value, cx: &Context<()>) -> Result<()> {
    let metadata = &definition["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let applied = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": name, "resourceVersion": metadata["resourceVersion"]},
        "status": status,
    });
    let parameters = PatchParams::apply(MANAGER).force();
    let written = definitions(cx).patch_status(name, &parameters, &Patch::Apply(applied)).await;
    match written.map_err(Error::from) {
        // The definition is read again.
        Err(error) if error.is_conflict() => Err(Error::other(error)),
        written => written.map(|_| ()),
    }
}
