//! Migrates the objects of a resource to the version that the server stores now: each object is written again.
//!
//! A key is a resource, so that one migration of a resource runs at a time. A definition gets the condition
//! `StorageMigrating`, and `status.storedVersions` loses the earlier versions at the end.

mod definition;
mod migration;
mod plan;
mod resource_version;
mod rewrite;

use futures::future::BoxFuture;
use kube_client::Client;
use kube_client::api::{Api, ListParams};
use kube_core::DynamicObject;
use kube_core::discovery::ApiResource;
use windlass_runtime::{Action, Context, Controller, Error, Manager, Result, RunContext, Runnable, Watch};

use self::migration::Migration;
use self::plan::{Step, next};

/// The name of the controller in kube-controller-manager, and the manager of the written objects.
const NAME: &str = "storage-version-migrator-controller";
const GROUP: &str = "storagemigration.k8s.io";
/// How many resources are migrated at the same time.
const WORKERS: usize = 5;

/// Adds the controller to a manager.
pub(crate) fn add_to(manager: Manager) -> Manager {
    let controller =
        Controller::keyed::<()>(NAME, reconcile).max_concurrent_reconciles(WORKERS).allow_hot_loops();
    let handle = controller.handle();
    let watch = move |cx: RunContext| -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            // A server of an earlier version has no migrations.
            if !is_served(cx.client()).await? {
                return Ok(());
            }
            let keys = |object: &DynamicObject, _: &_| Ok(vec![Migration::of(object).resource()]);
            handle.watch(Watch::mapped(resource(), keys).without_reads()).await.map(|_| ())
        })
    };
    manager.controller(controller).runnable(Runnable::new(GROUP, watch))
}

async fn is_served(client: &Client) -> Result<bool> {
    let groups = client.list_api_groups().await.map_err(Error::from)?;
    let version = resource().version;
    let is_version = |served: &str| served == version;
    Ok(groups
        .groups
        .iter()
        .filter(|group| group.name == GROUP)
        .any(|group| group.versions.iter().any(|served| is_version(&served.version))))
}

fn resource() -> ApiResource {
    ApiResource {
        group: GROUP.to_owned(),
        version: "v1".to_owned(),
        api_version: format!("{GROUP}/v1"),
        kind: "StorageVersionMigration".to_owned(),
        plural: "storageversionmigrations".to_owned(),
    }
}

/// Takes the next step for the migrations of a resource. The event of the step's write queues the resource again.
async fn reconcile(key: String, cx: Context<()>) -> Result<Action> {
    let all: Api<DynamicObject> = Api::all_with(cx.client().clone(), &resource());
    let list = all.list(&ListParams::default()).await.map_err(Error::from)?;
    let migrations: Vec<Migration> =
        list.items.iter().map(Migration::of).filter(|migration| migration.resource() == key).collect();
    let done = match next(&migrations) {
        None => Ok(Action::done()),
        Some(Step::Begin(migration)) => definition::begin(&migration, &cx).await,
        Some(Step::Migrate(migration)) => rewrite::migrate(migration, &cx).await,
        Some(Step::Finish(migration)) => definition::finish(&migration, &cx).await,
    };
    match done {
        // Another write was first: the event of the write queues the resource again.
        Err(error) if error.is_conflict() => Ok(Action::done()),
        done => done,
    }
}
