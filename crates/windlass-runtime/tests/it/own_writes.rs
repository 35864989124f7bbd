//! Controllers with `skip_own_writes`, and a controller without the option.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::CustomResource;
use kube_client::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube_core::ResourceExt as _;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use windlass_runtime::{
    Action, Context, Controller, ControllerHandle, Error, Manager, ObjectKey, Permission, Result, Verb,
    finalizer::{self, Finalize},
    owner::Owned,
};
use windlass_test::{TestCluster, eventually};

use crate::{
    fault::Faults,
    fixture::{
        Running, SOON, config_maps, create_config_map, expect_eq, metric, run, run_restricted, secret,
        secrets,
    },
};

const SKIPPED: &str = "windlass_controller_own_writes_skipped_total{controller=\"configmap\"}";

/// An operator at work: a reconcile creates the Secret of the ConfigMap, or marks the ConfigMap, and returns.
struct Operator {
    cluster: TestCluster,
    faults: Faults,
    handle: ControllerHandle<ObjectKey>,
    reconciles: Arc<AtomicUsize>,
    metrics: windlass_runtime::Metrics,
    running: Running,
}

impl Operator {
    async fn start(configure: impl FnOnce(Controller) -> Controller) -> Self {
        let cluster = TestCluster::start().await;
        create_config_map(&cluster.client(), "a").await;
        let reconciles = Arc::<AtomicUsize>::default();
        let counted = reconciles.clone();
        let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let counted = counted.clone();
            async move {
                let Some(parent) = cx.get(&key)?.filter(|_| key.to_string() == "default/a") else {
                    return Ok(Action::done());
                };
                if cx.owned_by::<Secret>(&parent)?.is_empty() {
                    cx.create(secret("s").controlled_by(&*parent)?).await?;
                } else if parent.data.is_none() {
                    let mut marked = ConfigMap::clone(&parent);
                    marked.data = Some([("has".to_owned(), "secret".to_owned())].into());
                    cx.update(&marked).await?;
                }
                counted.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Error>(Action::done())
            }
        })
        .owns::<Secret>()
        .needs(Permission::to::<Secret>([Verb::Create]))
        .needs(Permission::to::<ConfigMap>([Verb::Update]));
        let (faults, handle) = (Faults::before(cluster.client()), controller.handle());
        let manager = Manager::new(faults.client()).controller(configure(controller));
        let metrics = manager.metrics().clone();
        let running = run_restricted(&cluster, &faults, manager).await;
        Self { cluster, faults, handle, reconciles, metrics, running }
    }

    /// Waits for a number of reconciles of the key, and a number of events that were left out.
    async fn expect(&self, reconciles: usize, skipped: u64) {
        eventually(SOON, || async {
            let done = self.reconciles.load(Ordering::SeqCst);
            expect_eq((done, metric(&self.metrics.render(), SKIPPED)), (reconciles, skipped))
        })
        .await;
    }

    async fn annotate_secret(&self, value: &str) {
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { "other": value } } }));
        let patched = secrets(&self.cluster.client()).patch("s", &PatchParams::default(), &patch).await;
        patched.expect("patched");
    }
}

/// The reconciler takes a step for each event. Without the events of own writes, the reconciler would stop half-way.
#[tokio::test]
async fn a_reconciler_that_takes_one_step_goes_on_by_its_own_writes() {
    let operator = Operator::start(|controller| controller).await;
    // The create, the update, and a reconcile that finds nothing to do.
    operator.expect(3, 0).await;
    let map = config_maps(&operator.cluster.client()).get("a").await.expect("found");
    assert!(map.data.is_some());
    operator.running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn own_creates_and_updates_do_not_reconcile_and_writes_of_others_do() {
    let operator = Operator::start(Controller::skip_own_writes).await;
    operator.expect(1, 1).await;
    // The next reconcile updates the ConfigMap, and makes an own change again.
    operator.annotate_secret("1").await;
    operator.expect(2, 2).await;
    operator.annotate_secret("2").await;
    operator.expect(3, 2).await;
    // The reconcile creates the Secret again.
    let deleted = secrets(&operator.cluster.client()).delete("s", &DeleteParams::default()).await;
    deleted.expect("deleted");
    operator.expect(4, 3).await;
    operator.running.stop().await.expect("a graceful end");
}

/// The watches break before the event of an own write. The later watches go on, or begin with a list. `is_expired` is true if the watches begin
/// with a list, and `is_written` is true if another client writes, too.
async fn restart_watches(is_expired: bool, is_written: bool) {
    let operator = Operator::start(Controller::skip_own_writes).await;
    operator.expect(1, 1).await;
    operator.faults.hold_watches();
    // The reconcile updates the ConfigMap.
    operator.handle.enqueue(ObjectKey::namespaced("default", "a"));
    operator.expect(2, 1).await;
    let maps = config_maps(&operator.cluster.client());
    if is_written {
        let patch = Patch::Merge(json!({ "metadata": { "annotations": { "other": "1" } } }));
        maps.patch("a", &PatchParams::default(), &patch).await.expect("patched");
    }
    if is_expired {
        operator.faults.answer(Method::GET, "/configmaps?", 410, "Expired", None);
    }
    operator.faults.break_watches();
    operator.faults.release_watches();
    // A list shows both writes as one event.
    operator.expect(2 + usize::from(is_written), 2 - u64::from(is_expired && is_written)).await;
    // The next write of another client is no own write.
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { "other": "2" } } }));
    maps.patch("a", &PatchParams::default(), &patch).await.expect("patched");
    operator.expect(3 + usize::from(is_written), 2 - u64::from(is_expired && is_written)).await;
    operator.running.stop().await.expect("a graceful end");
}

#[tokio::test(start_paused = true)]
async fn an_own_write_that_a_later_watch_shows_is_left_out() {
    Box::pin(restart_watches(false, false)).await;
    Box::pin(restart_watches(true, false)).await;
}

#[tokio::test(start_paused = true)]
async fn a_later_watch_hides_no_write_of_another_client() {
    Box::pin(restart_watches(false, true)).await;
    Box::pin(restart_watches(true, true)).await;
}

#[tokio::test]
async fn a_resync_reconciles_after_an_own_write() {
    let resynced = |controller: Controller| controller.skip_own_writes().resync(Duration::from_millis(50));
    let operator = Operator::start(resynced).await;
    eventually(SOON, || async {
        let reconciles = operator.reconciles.load(Ordering::SeqCst);
        if reconciles >= 4 { Ok(()) } else { Err(format!("{reconciles} reconciles")) }
    })
    .await;
    operator.running.stop().await.expect("a graceful end");
}

/// A mapper returns the keys `a` and `b` for the own write of key `a`.
#[tokio::test]
async fn an_own_write_reconciles_the_other_keys_of_a_mapper() -> Result<()> {
    let cluster = TestCluster::start().await;
    for name in ["a", "b"] {
        create_config_map(&cluster.client(), name).await;
    }
    let (of_a, of_b) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (a, b) = (of_a.clone(), of_b.clone());
    let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
        let (a, b) = (a.clone(), b.clone());
        async move {
            match key.name() {
                "a" => {
                    let missing =
                        cx.lister::<Secret>()?.get(&ObjectKey::namespaced("default", "s"))?.is_none();
                    if missing && b.load(Ordering::SeqCst) > 0 {
                        cx.create(secret("s")).await?;
                    }
                    a.fetch_add(1, Ordering::SeqCst);
                    Ok(if missing && b.load(Ordering::SeqCst) == 0 {
                        Action::requeue_after(Duration::from_millis(5))
                    } else {
                        Action::done()
                    })
                }
                "b" => {
                    b.fetch_add(1, Ordering::SeqCst);
                    Ok::<_, Error>(Action::done())
                }
                _ => Ok(Action::done()),
            }
        }
    })
    .watches::<Secret>(|secret, _| {
        let is_ours = secret.metadata.name.as_deref() == Some("s");
        let keys = ["a", "b"].map(|name| ObjectKey::namespaced("default", name));
        Ok(if is_ours { keys.to_vec() } else { Vec::new() })
    })
    .needs(Permission::to::<Secret>([Verb::Create]))
    .skip_own_writes();
    let manager = Manager::new(cluster.client()).controller(controller);
    let metrics = manager.metrics().clone();
    let running = crate::fixture::run_declared(&cluster, manager).await;
    eventually(SOON, || async {
        let skipped = metric(&metrics.render(), SKIPPED);
        expect_eq((of_b.load(Ordering::SeqCst), skipped), (2, 1))
    })
    .await;
    running.stop().await
}

/// The guard adds the finalizer, which is an own write, and removes the finalizer at the end.
#[tokio::test]
async fn a_finalizer_is_an_own_write_and_a_deletion_is_not() {
    let cluster = TestCluster::start().await;
    let maps = config_maps(&cluster.client());
    let seen = Arc::<Mutex<Vec<&str>>>::default();
    let controller = {
        let seen = seen.clone();
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let seen = seen.clone();
            async move {
                if key.to_string() != "default/a" {
                    return Ok(Action::done());
                }
                let Some(map) = cx.get(&key)? else {
                    seen.lock().push("gone");
                    return Ok(Action::done());
                };
                finalizer::guard(&cx, map, "example.com/own", async |event| {
                    seen.lock().push(match event {
                        Finalize::Apply(_) => "apply",
                        Finalize::Cleanup(_) => "clean up",
                    });
                    Ok::<_, Error>(Action::done())
                })
                .await
            }
        })
    };
    let controller = controller.needs(Permission::to::<ConfigMap>([Verb::Patch])).skip_own_writes();
    let manager = Manager::new(cluster.client()).controller(controller);
    let metrics = manager.metrics().clone();
    let running = crate::fixture::run_declared(&cluster, manager).await;
    create_config_map(&cluster.client(), "a").await;
    let state = || (seen.lock().clone(), metric(&metrics.render(), SKIPPED));
    eventually(SOON, || async { expect_eq(state(), (vec!["apply"], 1)) }).await;
    maps.delete("a", &DeleteParams::default()).await.expect("deleted");
    eventually(SOON, || async { expect_eq(state(), (vec!["apply", "clean up", "gone"], 1)) }).await;
    running.stop().await.expect("a graceful end");
}

#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(group = "example.com", version = "v1", kind = "Lamp", namespaced, status = "LampStatus")]
struct LampSpec {}

#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
struct LampStatus {
    shines: bool,
}

fn lamp() -> Lamp {
    let mut lamp = Lamp::new("a", LampSpec {});
    lamp.metadata.namespace = Some("default".to_owned());
    lamp
}

/// A write that demands a resource version hides no write of another client. The next write of the reconcile goes on from the new version.
#[tokio::test]
async fn a_patch_and_an_apply_with_a_resource_version_are_own_writes() {
    let cluster = TestCluster::start().await;
    cluster.install_crd::<Lamp>().await;
    let reconciles = Arc::<AtomicUsize>::default();
    let counted = reconciles.clone();
    let controller = Controller::of::<Lamp>(move |key: ObjectKey, cx: Context<Lamp>| {
        let counted = counted.clone();
        async move {
            let Some(read) = cx.get(&key)? else { return Ok(Action::done()) };
            counted.fetch_add(1, Ordering::SeqCst);
            let version = |lamp: &Lamp| lamp.resource_version().unwrap_or_default();
            let patch = Patch::Merge(json!({ "metadata": { "annotations": { "seen": "yes" } } }));
            let patched = cx.patch::<Lamp, _>(&key, &patch).if_resource_version(version(&read)).await?;
            let mut labelled = lamp();
            labelled.labels_mut().insert("app".to_owned(), "web".to_owned());
            cx.apply_object(&labelled).if_resource_version(version(&patched)).await?;
            cx.update_status(&read, LampStatus { shines: true }).await?;
            Ok::<_, Error>(Action::done())
        }
    });
    let manager = Manager::new(cluster.client()).controller(controller.skip_own_writes());
    let metrics = manager.metrics().clone();
    let running = run(manager);
    let lamps: Api<Lamp> = Api::default_namespaced(cluster.client());
    lamps.create(&PostParams::default(), &lamp()).await.expect("created");
    let skipped = SKIPPED.replace("configmap", "lamp");
    eventually(SOON, || async {
        let done = reconciles.load(Ordering::SeqCst);
        expect_eq((done, metric(&metrics.render(), &skipped)), (1, 3))
    })
    .await;
    running.stop().await.expect("a graceful end");
}
