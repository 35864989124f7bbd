//! The work of a migration: each object is written again.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube_client::api::{Api, ListParams, PartialObjectMeta, Patch};
use kube_core::discovery::ApiResource;
use kube_core::{DynamicObject, ResourceExt};
use serde_json::json;
use windlass_runtime::{Action, Context, Error, Result};

use super::migration::{IS_RUNNING, Migration, RUNNING, SUCCEEDED};
use crate::component;

/// The verbs that a resource needs.
const VERBS: [&str; 3] = ["update", "patch", "list"];
/// How long a migration waits for the resource.
const PATIENCE: Duration = Duration::from_mins(1);
/// The interval of the looks for a resource that is not served yet.
const RETRY: Duration = Duration::from_secs(1);

/// Notes the resource version of the present state, or writes the objects of that state again.
pub(super) async fn migrate(mut migration: Migration, cx: &Context<()>) -> Result<Action> {
    let Some((resource, verbs)) = served(&migration, cx).await? else {
        let waits = migration.created().is_some_and(|created| cx.now().duration_since(created) < patience());
        if waits {
            return Ok(Action::requeue_after(RETRY));
        }
        migration.set_failed(cx, "resource does not exist in discovery");
        return done(migration, cx).await;
    };
    let objects: Api<DynamicObject> = Api::all_with(cx.client().clone(), &resource);
    let Some(version) = migration.resource_version().and_then(number) else {
        if !VERBS.iter().all(|verb| verbs.iter().any(|has| has == verb)) {
            let name = format!("{}/{}, Resource={}", resource.group, resource.version, resource.plural);
            let wanted = VERBS.join(" ");
            let why = format!("resource {name:?} does not support discovery operations: [{wanted}]");
            migration.set_failed(cx, why);
            return done(migration, cx).await;
        }
        let one = ListParams::default().limit(1);
        let list = objects.list_metadata(&one).await.map_err(Error::from)?;
        migration.set_resource_version(list.metadata.resource_version.as_deref().unwrap_or_default());
        return done(migration, cx).await;
    };
    let all = objects.list_metadata(&ListParams::default()).await.map_err(Error::from)?.items;
    rewrite(migration, &resource, all, version, cx).await
}

async fn done(migration: Migration, cx: &Context<()>) -> Result<Action> {
    migration.write_status(cx).await?;
    Ok(Action::done())
}

fn patience() -> jiff::SignedDuration {
    PATIENCE.try_into().unwrap_or_default()
}

fn number(version: &str) -> Option<u64> {
    version.parse().ok()
}

/// Writes the objects again that have not changed since the resource version.
async fn rewrite(
    mut migration: Migration,
    resource: &ApiResource,
    all: Vec<PartialObjectMeta<DynamicObject>>,
    version: u64,
    cx: &Context<()>,
) -> Result<Action> {
    let total = all.len();
    let is_old = |object: &PartialObjectMeta<DynamicObject>| {
        object.metadata.resource_version.as_deref().and_then(number).is_some_and(|at| at <= version)
    };
    let old: Vec<_> = all.into_iter().filter(is_old).collect();
    let mut left = old.len();
    for object in old {
        match write_again(&object, resource, cx).await {
            Ok(()) => left -= 1,
            // Another write, or a deletion, has done the work.
            Err(error) if error.is_conflict() || error.is_not_found() => left -= 1,
            Err(error) if error.is_transient() => {
                let message = format!("{}; transient error: {}", progress(left, total), text(&error));
                migration.set_true(cx, RUNNING, IS_RUNNING, message);
                migration.write_status(cx).await?;
                return Err(error);
            }
            Err(error) => {
                migration.set_true(cx, RUNNING, IS_RUNNING, progress(left, total));
                let why = text(&error);
                migration.set_failed(
                    cx,
                    format!("{left}/{total} not yet migrated. migration encountered unhandled error: {why}"),
                );
                return done(migration, cx).await;
            }
        }
    }
    migration.set_true(cx, RUNNING, IS_RUNNING, progress(left, total));
    migration.set_true(cx, SUCCEEDED, "StorageVersionMigrationSucceeded", "Migration completed");
    done(migration, cx).await
}

/// Sends a patch without a change: the server stores the object again if the stored version is another version.
async fn write_again(
    object: &PartialObjectMeta<DynamicObject>,
    resource: &ApiResource,
    cx: &Context<()>,
) -> Result<()> {
    let objects: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(cx.client().clone(), namespace, resource),
        None => Api::all_with(cx.client().clone(), resource),
    };
    let patch = json!({
        "apiVersion": resource.api_version, "kind": resource.kind,
        "metadata": {"resourceVersion": object.metadata.resource_version},
    });
    let parameters = component::patch(super::NAME);
    let written = objects.patch_metadata(&object.name_any(), &parameters, &Patch::Merge(patch)).await;
    written.map(|_| ()).map_err(Error::from)
}

fn progress(left: usize, total: usize) -> String {
    let what = match (left, total) {
        (_, 0) => String::new(),
        (0, _) => format!(", {total} objects verified migrated"),
        _ => format!(", {left}/{total} objects not yet migrated"),
    };
    format!("The migration is running{what}")
}

/// Returns the message of the server.
fn text(error: &Error) -> String {
    error.status().map_or_else(|| error.to_string(), |status| status.message.clone())
}

/// Returns the resource in the first version of the group that has the resource, and the verbs of the resource; `None` if the resource is
/// not served.
async fn served(migration: &Migration, cx: &Context<()>) -> Result<Option<(ApiResource, Vec<String>)>> {
    let group = migration.group();
    if group.is_empty() {
        return in_version(migration, "v1", cx).await;
    }
    let groups = cx.client().list_api_groups().await.map_err(Error::from)?.groups;
    let found = groups.into_iter().find(|found| found.name == group);
    // The first version is the preferred version. A resource may exist in later versions alone.
    for version in found.into_iter().flat_map(|found| found.versions) {
        if let Some(found) = in_version(migration, &version.group_version, cx).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Returns the resource in a version of the group, and the verbs of the resource.
async fn in_version(
    migration: &Migration,
    group_version: &str,
    cx: &Context<()>,
) -> Result<Option<(ApiResource, Vec<String>)>> {
    let (client, group, plural) = (cx.client(), migration.group(), migration.plural());
    let listed = if group.is_empty() {
        client.list_core_api_resources(group_version).await
    } else {
        client.list_api_group_resources(group_version).await
    };
    let list = match listed.map_err(Error::from) {
        Err(error) if error.is_not_found() => return Ok(None),
        listed => listed?,
    };
    let found = list.resources.into_iter().find(|resource| resource.name == plural);
    Ok(found.map(|APIResource { kind, verbs, .. }| {
        let resource = ApiResource {
            group: group.to_owned(),
            version: group_version.rsplit('/').next().unwrap_or_default().to_owned(),
            api_version: group_version.to_owned(),
            kind,
            plural: plural.to_owned(),
        };
        (resource, verbs)
    }))
}
