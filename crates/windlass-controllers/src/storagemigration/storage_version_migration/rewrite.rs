//! The work of a migration: each object is written again.

use std::fmt;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube_client::api::{Api, ListParams, PartialObjectMeta, Patch};
use kube_core::discovery::ApiResource;
use kube_core::{DynamicObject, ResourceExt};
use serde_json::json;
use windlass_runtime::client::path_segment;
use windlass_runtime::{Action, Context, Error, Result};

use super::migration::{IS_RUNNING, Migration, RUNNING, SUCCEEDED};
use super::resource_version::ResourceVersion;
use crate::component;

/// The verbs that a resource needs.
const VERBS: [&str; 3] = ["update", "patch", "list"];
/// How long a migration waits for the resource.
const PATIENCE: Duration = Duration::from_mins(1);
/// The interval of the looks for a resource that is not served yet.
const RETRY: Duration = Duration::from_secs(1);

/// Notes the resource version of the present state, or writes the objects of that state again.
pub(super) async fn migrate(mut migration: Migration, cx: &Context<()>) -> Result<Action> {
    let noted = migration.resource_version().map(str::to_owned);
    let Some((resource, verbs)) = served(&migration, cx).await? else {
        let waits = migration.created().is_some_and(|created| cx.now().duration_since(created) < patience());
        if waits {
            return Ok(Action::requeue_after(RETRY));
        }
        let why = match noted {
            None => "resource does not exist in discovery".to_owned(),
            Some(_) => unhandled("unable to obtain GVR from discovery"),
        };
        return fail(migration, why, cx).await;
    };
    let objects: Api<DynamicObject> = Api::all_with(cx.client().clone(), &resource);
    match noted {
        Some(noted) => {
            let list = objects.list_metadata(&ListParams::default()).await.map_err(Error::from)?;
            rewrite(migration, &resource, list.items, &noted, cx).await
        }
        None => match position(&objects, &resource, &verbs).await? {
            Ok(position) => {
                migration.set_resource_version(&position);
                done(migration, cx).await
            }
            Err(why) => fail(migration, why, cx).await,
        },
    }
}

/// Returns the resource version of the present state, or why the resource cannot be migrated.
async fn position(
    objects: &Api<DynamicObject>,
    resource: &ApiResource,
    verbs: &[String],
) -> Result<Result<String, String>> {
    let name = format!("{}/{}, Resource={}", resource.group, resource.version, resource.plural);
    if !VERBS.iter().all(|verb| verbs.iter().any(|has| has == verb)) {
        let wanted = VERBS.join(" ");
        return Ok(Err(format!("resource {name:?} does not support discovery operations: [{wanted}]")));
    }
    let list = objects.list_metadata(&ListParams::default().limit(1)).await.map_err(Error::from)?;
    let position = list.metadata.resource_version.unwrap_or_default();
    Ok(match ResourceVersion::of(&position) {
        Ok(_) => Ok(position),
        Err(why) => Err(format!("latest resourceVersion for {name} is not valid: {why}")),
    })
}

/// Returns the message of a failure that the controller does not expect.
fn unhandled(why: impl fmt::Display) -> String {
    format!("migration encountered unhandled error: {why}")
}

/// Ends a migration that cannot go on.
async fn fail(mut migration: Migration, why: String, cx: &Context<()>) -> Result<Action> {
    migration.set_failed(cx, why);
    done(migration, cx).await
}

async fn done(migration: Migration, cx: &Context<()>) -> Result<Action> {
    migration.write_status(cx).await?;
    Ok(Action::done())
}

fn patience() -> jiff::SignedDuration {
    PATIENCE.try_into().unwrap_or_default()
}

/// Returns the objects that have not changed since the resource version.
///
/// # Errors
///
/// The message of a migration whose resource versions have no order.
fn unchanged(
    objects: Vec<PartialObjectMeta<DynamicObject>>,
    noted: &str,
) -> Result<Vec<PartialObjectMeta<DynamicObject>>, String> {
    let compared = "error comparing resource versions between GC and SVM resource";
    let noted = ResourceVersion::of(noted).map_err(|why| unhandled(format!("{compared}: {why}")))?;
    let mut old = Vec::with_capacity(objects.len());
    for object in objects {
        let version = object.metadata.resource_version.as_deref().unwrap_or_default();
        if ResourceVersion::of(version).map_err(unhandled)? <= noted {
            old.push(object);
        }
    }
    Ok(old)
}

/// Writes the objects again that have not changed since the resource version.
async fn rewrite(
    mut migration: Migration,
    resource: &ApiResource,
    all: Vec<PartialObjectMeta<DynamicObject>>,
    noted: &str,
    cx: &Context<()>,
) -> Result<Action> {
    let total = all.len();
    let old = match unchanged(all, noted) {
        Ok(old) => old,
        Err(why) => return fail(migration, why, cx).await,
    };
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
                let why = unhandled(text(&error));
                return fail(migration, format!("{left}/{total} not yet migrated. {why}"), cx).await;
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
    let name = object.name_any();
    let written = objects.patch_metadata(&path_segment(&name)?, &parameters, &Patch::Merge(patch)).await;
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
