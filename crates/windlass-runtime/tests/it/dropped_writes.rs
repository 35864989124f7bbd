//! Writes that are dropped after each poll of the future. The server gets each write once.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::Poll,
    time::Duration,
};

use http::Method;
use k8s_openapi::{
    api::core::v1::{
        ConfigMap, PersistentVolumeClaim, PersistentVolumeClaimSpec, PersistentVolumeClaimStatus, Secret,
        VolumeResourceRequirements,
    },
    apimachinery::pkg::api::resource::Quantity,
};
use kube_client::api::{ListParams, Patch};
use serde_json::json;
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey, Permission, Result, Verb, owner::Owned,
};
use windlass_test::{TestCluster, eventually};

use crate::{
    fault::Faults,
    fixture::{SOON, create_config_map, run_restricted, secret, secrets},
};

type Flag = Arc<AtomicBool>;

/// The outcome of a reconcile.
enum Step {
    NothingToDo,
    Written,
    Dropped,
}

impl<T> From<Option<T>> for Step {
    fn from(written: Option<T>) -> Self {
        if written.is_some() { Self::Written } else { Self::Dropped }
    }
}

/// Polls a future so many times at most, and drops the future then. Returns `None` if the future was dropped.
async fn drop_after<F: Future>(polls: usize, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(move |cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        future.as_mut().poll(cx).map(Some)
    })
    .await
}

/// A write of the test.
#[derive(Clone, Copy)]
enum Write {
    CreateWithPrefix,
    CreateWithName,
    Patch,
    Update,
    Apply,
    Status,
    Delete,
}

impl Write {
    /// Returns whether the write needs an object that the caches show.
    fn needs_object(self) -> bool {
        matches!(self, Self::Delete | Self::Patch | Self::Update | Self::Status)
    }

    /// Creates the object that the write needs.
    async fn prepare(self, cx: &Context<ConfigMap>, parent: &ConfigMap) -> Result<()> {
        match self {
            Self::Status => {
                cx.create(claim().controlled_by(parent)?).await?;
            }
            _ => {
                cx.create(secret("s").controlled_by(parent)?).await?;
            }
        }
        Ok(())
    }

    /// Brings the objects of the parent to the state that the write leads to.
    async fn reconcile(self, cx: &Context<ConfigMap>, parent: &ConfigMap, polls: usize) -> Result<Step> {
        if matches!(self, Self::Status) {
            return write_status(cx, parent, polls).await;
        }
        let owned = cx.owned_by::<Secret>(parent)?.not_terminating();
        let new = secret("s").controlled_by(parent)?;
        let found = owned.iter().next();
        let is_marked = found.is_some_and(|found| found.metadata.annotations.is_some());
        match (self, found) {
            (Self::CreateWithPrefix | Self::CreateWithName, Some(_)) | (Self::Delete, None) => {
                Ok(Step::NothingToDo)
            }
            (Self::Patch | Self::Update | Self::Apply, _) if is_marked => Ok(Step::NothingToDo),
            (Self::CreateWithPrefix, None) => {
                let mut new = new;
                new.metadata.generate_name = new.metadata.name.take().map(|name| name + "-");
                Ok(drop_after(polls, cx.create(new)).await.transpose()?.into())
            }
            (Self::CreateWithName, None) => Ok(drop_after(polls, cx.create(new)).await.transpose()?.into()),
            (Self::Update, Some(found)) => {
                let marked = marked(Secret::clone(found));
                Ok(drop_after(polls, cx.update(&marked)).await.transpose()?.into())
            }
            (Self::Apply, _) => {
                let apply = cx.apply_object(&marked(new)).into_future();
                Ok(drop_after(polls, apply).await.transpose()?.into())
            }
            (Self::Patch | Self::Update | Self::Status, _) => {
                let mark = Patch::Merge(json!({ "metadata": { "annotations": { "marked": "yes" } } }));
                let patch = cx.patch::<Secret, _>(&ObjectKey::namespaced("default", "s"), &mark);
                Ok(drop_after(polls, patch.into_future()).await.transpose()?.into())
            }
            (Self::Delete, Some(found)) => {
                Ok(drop_after(polls, cx.delete(found).into_future()).await.transpose()?.into())
            }
        }
    }

    fn objects_afterwards(self) -> usize {
        usize::from(!matches!(self, Self::Delete | Self::Status))
    }

    /// Returns the method of the request, and the end of the path of the request.
    fn request(self) -> (Method, &'static str) {
        match self {
            Self::CreateWithPrefix | Self::CreateWithName => (Method::POST, "/secrets"),
            Self::Patch | Self::Apply => (Method::PATCH, "/secrets/s"),
            Self::Update => (Method::PUT, "/secrets/s"),
            Self::Status => (Method::PATCH, "/persistentvolumeclaims/s/status"),
            Self::Delete => (Method::DELETE, "/secrets/s"),
        }
    }
}

fn marked(mut secret: Secret) -> Secret {
    secret.metadata.annotations = Some([("marked".to_owned(), "yes".to_owned())].into());
    secret
}

/// A kind with a status.
fn claim() -> PersistentVolumeClaim {
    let requests = [("storage".to_owned(), Quantity("1Gi".to_owned()))].into();
    PersistentVolumeClaim {
        metadata: secret("s").metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            resources: Some(VolumeResourceRequirements { requests: Some(requests), limits: None }),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}

/// Writes the status of the parent's claim.
async fn write_status(cx: &Context<ConfigMap>, parent: &ConfigMap, polls: usize) -> Result<Step> {
    let owned = cx.owned_by::<PersistentVolumeClaim>(parent)?;
    let Some(claim) = owned.iter().next() else { return Ok(Step::Written) };
    if claim.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Lost")) {
        return Ok(Step::NothingToDo);
    }
    let status = PersistentVolumeClaimStatus {
        phase: Some("Lost".to_owned()),
        ..PersistentVolumeClaimStatus::default()
    };
    let write = cx.update_status(claim, status).into_future();
    Ok(drop_after(polls, write).await.transpose()?.into())
}

/// Drops a write after so many polls while the watches lag, and lets the reconciles go on until nothing is left to do. Returns false if the
/// write ended before.
async fn drop_once(write: Write, polls: usize) -> bool {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let faults = Faults::before(client.clone());
    let (done, first, is_tried, is_dropped) = <(Flag, Flag, Flag, Flag)>::default();
    let controller = {
        let (faults, done, is_dropped) = (faults.clone(), done.clone(), is_dropped.clone());
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let (faults, done, first, is_tried, is_dropped) =
                (faults.clone(), done.clone(), first.clone(), is_tried.clone(), is_dropped.clone());
            async move {
                let Some(parent) = cx.get(&key)?.filter(|_| key.to_string() == "default/a") else {
                    return Ok(Action::done());
                };
                if write.needs_object() && !first.swap(true, Ordering::SeqCst) {
                    write.prepare(&cx, &parent).await?;
                    return Ok(Action::requeue_after(Duration::ZERO));
                }
                faults.hold_watches();
                let limit = if is_tried.swap(true, Ordering::SeqCst) { usize::MAX } else { polls };
                let step = write.reconcile(&cx, &parent, limit).await?;
                faults.release_watches();
                match step {
                    Step::Dropped => is_dropped.store(true, Ordering::SeqCst),
                    Step::Written => {}
                    Step::NothingToDo => {
                        done.store(true, Ordering::SeqCst);
                        return Ok(Action::done());
                    }
                }
                Ok::<_, Error>(Action::requeue_after(Duration::ZERO))
            }
        })
        .owns::<Secret>()
        .owns::<PersistentVolumeClaim>()
        .needs(Permission::to::<Secret>([Verb::Create, Verb::Update, Verb::Patch, Verb::Delete]))
        .needs(Permission::to::<PersistentVolumeClaim>([Verb::Create]))
        .needs(Permission::to::<PersistentVolumeClaim>([Verb::Patch]).subresource("status"))
    };
    let manager = Manager::new(faults.client()).controller(controller);
    let running = run_restricted(&cluster, &faults, manager).await;
    eventually(SOON, || async {
        if done.load(Ordering::SeqCst) { Ok(()) } else { Err("the reconciles go on") }
    })
    .await;
    running.stop().await.expect("a graceful end");
    let left = secrets(&client).list(&ListParams::default()).await.expect("listed").items;
    let names: Vec<_> = left.iter().map(|secret| &secret.metadata.name).collect();
    assert_eq!(left.len(), write.objects_afterwards(), "after {polls} polls: {names:?}");
    let (method, path) = write.request();
    assert_eq!(faults.count(&method, path), 1, "requests, after {polls} polls: {:?}", faults.seen());
    is_dropped.load(Ordering::SeqCst)
}

async fn drop_everywhere(write: Write) {
    let mut polls = 0;
    while drop_once(write, polls).await {
        polls += 1;
    }
    assert!(polls > 1, "the write waits at least once");
}

#[tokio::test]
async fn a_create_with_a_generated_name_that_is_dropped_makes_one_object() {
    drop_everywhere(Write::CreateWithPrefix).await;
}

#[tokio::test]
async fn a_create_with_a_name_that_is_dropped_makes_one_object() {
    drop_everywhere(Write::CreateWithName).await;
}

#[tokio::test]
async fn a_patch_that_is_dropped_is_carried_out_in_the_end() {
    drop_everywhere(Write::Patch).await;
}

#[tokio::test]
async fn a_deletion_that_is_dropped_deletes_one_object() {
    drop_everywhere(Write::Delete).await;
}

#[tokio::test]
async fn an_update_that_is_dropped_is_carried_out_in_the_end() {
    drop_everywhere(Write::Update).await;
}

#[tokio::test]
async fn an_apply_that_is_dropped_is_carried_out_in_the_end() {
    drop_everywhere(Write::Apply).await;
}

#[tokio::test]
async fn a_status_that_is_dropped_is_written_in_the_end() {
    drop_everywhere(Write::Status).await;
}
