//! Controllers and runnables that are added, stopped or held back while other parts work.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube_client::{
    Client,
    api::{Api, DeleteParams, PostParams},
};
use kube_core::{ApiResource, DynamicObject, GroupVersionKind};
use parking_lot::Mutex;
use serde_json::json;
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey, RunContext, Runnable, Watch,
    informer::SharedInformer, kind, leader_election::LeaderElection, manager::Group,
};
use windlass_test::{TestCluster, eventually, stretched};

use crate::{
    fault::Faults,
    fixture::{SOON, create_config_map, expect_eq, metric, run, run_restricted, secret, secrets},
    manager::{free_address, get},
};

/// A controller of ConfigMaps that writes the names of the keys down.
fn noting(name: &str, notes: &Arc<Mutex<Vec<String>>>) -> Controller {
    let (label, notes) = (name.to_owned(), notes.clone());
    Controller::of::<ConfigMap>(move |key: ObjectKey, _: Context<ConfigMap>| {
        notes.lock().push(format!("{label}: {}", key.name()));
        async { Ok::<_, Error>(Action::done()) }
    })
    .named(name)
}

async fn noted(notes: &Mutex<Vec<String>>, line: &str) {
    let told = || {
        let notes = notes.lock();
        if notes.iter().any(|note| note == line) { Ok(()) } else { Err(format!("{notes:?}")) }
    };
    eventually(SOON, || async { told() }).await;
}

#[tokio::test]
async fn a_controller_is_added_stopped_and_added_again() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let notes = Arc::new(Mutex::new(Vec::new()));
    let manager = Manager::new(client.clone());
    let (handle, metrics) = (manager.handle(), manager.metrics().clone());
    let running = run(manager);
    handle.add_controller(noting("first", &notes)).await.expect("added");
    noted(&notes, "first: a").await;
    let error = handle.add_controller(noting("first", &notes)).await.expect_err("the name is taken");
    assert!(error.to_string().contains("two controllers are called \"first\""), "{error}");
    assert!(metrics.render().contains("workqueue_depth{name=\"first\""));

    handle.stop("first").await.expect("stopped");
    assert!(!metrics.render().contains("workqueue_depth{name=\"first\""));
    let error = handle.stop("first").await.expect_err("it has ended");
    assert_eq!(error.to_string(), "the manager has no part called \"first\"");
    create_config_map(&client, "b").await;
    handle.add_controller(noting("second", &notes)).await.expect("added");
    noted(&notes, "second: b").await;
    assert!(!notes.lock().contains(&"first: b".to_owned()), "{:?}", notes.lock());

    handle.add_controller(noting("first", &notes)).await.expect("the name is free again");
    noted(&notes, "first: b").await;
    running.stop().await.expect("a graceful end");
    assert!(handle.stop("first").await.expect_err("the manager has ended").is_stopped());
}

#[tokio::test]
async fn a_stopped_controller_completes_its_reconcile() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let (begun, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let controller = {
        let (begun, ended) = (begun.clone(), ended.clone());
        Controller::of::<ConfigMap>(move |_: ObjectKey, _: Context<ConfigMap>| {
            let (begun, ended) = (begun.clone(), ended.clone());
            async move {
                begun.store(true, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(100)).await;
                ended.store(true, Ordering::SeqCst);
                Ok::<_, Error>(Action::done())
            }
        })
    };
    let manager = Manager::new(cluster.client()).controller(controller.named("slow"));
    let handle = manager.handle();
    let running = cluster.run_restricted(manager).await;
    eventually(SOON, || async { if begun.load(Ordering::SeqCst) { Ok(()) } else { Err("not begun") } }).await;
    handle.stop("slow").await.expect("stopped");
    assert!(ended.load(Ordering::SeqCst));
    running.stop().await.expect("a graceful end");
}

#[tokio::test(start_paused = true)]
async fn a_part_that_does_not_stop_is_ended_by_force() {
    let cluster = TestCluster::start().await;
    let begun = Arc::new(AtomicBool::new(false));
    let flag = begun.clone();
    let manager =
        Manager::new(cluster.client()).runnable(Runnable::new("stubborn", move |_: RunContext| async move {
            flag.store(true, Ordering::SeqCst);
            std::future::pending::<()>().await;
            Ok::<_, Error>(())
        }));
    let handle = manager.handle();
    let running = cluster.run_restricted(manager).await;
    eventually(SOON, || async { if begun.load(Ordering::SeqCst) { Ok(()) } else { Err("not begun") } }).await;
    handle.stop("stubborn").await.expect("it is gone");
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn what_waits_for_leadership_is_stopped_too() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let election = |identity: &str| LeaderElection::new("operator").identity(identity);
    let leads = Arc::new(AtomicBool::new(false));
    let flag = leads.clone();
    let leader = run(Manager::new(client.clone()).leader_election(election("one")).runnable(
        Runnable::new("work", move |cx: RunContext| async move {
            flag.store(true, Ordering::SeqCst);
            cx.shutdown().requested().await;
            Ok::<_, Error>(())
        })
        .group(Group::LeaderElected),
    ));
    eventually(SOON, || async { if leads.load(Ordering::SeqCst) { Ok(()) } else { Err("no leader") } }).await;
    let notes = Arc::new(Mutex::new(Vec::new()));
    let standby = Manager::new(client.clone())
        .leader_election(election("two"))
        .controller(noting("idle", &notes).enable_warmup());
    let handle = standby.handle();
    let running = cluster.run_restricted(standby).await;
    handle.stop("idle").await.expect("stopped");
    create_config_map(&client, "a").await;
    leader.stop().await.expect("a graceful end");
    let leads = Arc::new(AtomicBool::new(false));
    let flag = leads.clone();
    let work = Runnable::new("work", move |_: RunContext| async move {
        flag.store(true, Ordering::SeqCst);
        Ok::<_, Error>(())
    });
    handle.add_runnable(work.group(Group::LeaderElected)).expect("it runs");
    eventually(SOON, || async { if leads.load(Ordering::SeqCst) { Ok(()) } else { Err("no leader") } }).await;
    assert!(notes.lock().is_empty(), "{:?}", notes.lock());
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_runnable_begins_when_the_caches_are_filled() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let faults = Faults::before(client);
    faults.answer(Method::GET, "/configmaps", 403, "Forbidden", None);
    let (early, synced) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let manager = {
        let (early, synced) = (early.clone(), synced.clone());
        Manager::new(faults.client())
            .controller(noting("maps", &Arc::default()))
            .runnable(
                Runnable::new("early", move |_: RunContext| async move {
                    early.store(true, Ordering::SeqCst);
                    Ok::<_, Error>(())
                })
                .without_caches(),
            )
            .runnable(Runnable::new("late", move |cx: RunContext| async move {
                let filled = cx.informers().informers().iter().all(SharedInformer::has_synced);
                synced.store(1 + usize::from(filled), Ordering::SeqCst);
                Ok::<_, Error>(())
            }))
    };
    let running = run_restricted(&cluster, &faults, manager).await;
    eventually(SOON, || async { if early.load(Ordering::SeqCst) { Ok(()) } else { Err("not begun") } }).await;
    eventually(SOON, || async { expect_eq(synced.load(Ordering::SeqCst), 2) }).await;
    running.stop().await.expect("a graceful end");
}

fn missing_kind() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Missing"))
}

/// A controller of a kind that the server may not know yet.
fn of_missing_kind(label: &'static str, notes: &Arc<Mutex<Vec<String>>>) -> Controller {
    let notes = notes.clone();
    Controller::keyed::<()>("missing", move |key: ObjectKey, _: Context<()>| {
        notes.lock().push(format!("{label}: {}", key.name()));
        async { Ok::<_, Error>(Action::done()) }
    })
    .watch(Watch::primary(missing_kind()))
}

async fn install_missing_kind(client: &Client) {
    let definition = json!({
        "metadata": {"name": "missings.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Missing", "plural": "missings"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let definition = serde_json::from_value(definition).expect("a definition");
    definitions(client).create(&PostParams::default(), &definition).await.expect("created");
}

fn definitions(client: &Client) -> Api<CustomResourceDefinition> {
    Api::all(client.clone())
}

/// The cache of a kind that is uninstalled is not stale.
#[tokio::test]
async fn a_manager_whose_kind_is_uninstalled_stays_ready() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    install_missing_kind(&client).await;
    let health = free_address().await;
    let manager = Manager::new(client.clone())
        .controller(of_missing_kind("only", &Arc::default()))
        .stale_watches_fail_readiness_after(Some(Duration::from_millis(100)))
        .health_address(health);
    let metrics = manager.metrics().clone();
    let running = run(manager);
    let ready = || async move {
        let (code, text) = get(health, "/readyz").await.map_err(|error| error.to_string())?;
        if code == 200 { Ok(()) } else { Err(text) }
    };
    eventually(SOON, ready).await;
    definitions(&client).delete("missings.example.com", &DeleteParams::default()).await.expect("deleted");
    let name = "windlass_watch_failing_seconds{resource=\"missings.example.com\"}";
    eventually(SOON, || async {
        if metric(&metrics.render(), name) > 0 { Ok(()) } else { Err("the watch works") }
    })
    .await;
    ready().await.expect("ready");
    running.stop().await.expect("a graceful end");
}

/// A controller that is stopped before the server knows its kind, and added again, runs once.
#[tokio::test(start_paused = true)]
async fn a_controller_that_is_stopped_while_it_asks_the_server_does_not_start_later() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let notes = Arc::new(Mutex::new(Vec::new()));
    // The controller needs to know before the start whether the kind has namespaces.
    let manager = Manager::new(client.clone()).namespaces(["default"]);
    let handle = manager.handle();
    let running = run(manager);
    handle.add_controller(of_missing_kind("first", &notes)).await.expect("added");
    handle.stop("missing").await.expect("stopped");
    handle.add_controller(of_missing_kind("second", &notes)).await.expect("the name is free again");

    install_missing_kind(&client).await;
    let objects: Api<DynamicObject> = Api::namespaced_with(client, "default", &missing_kind());
    for name in ["a", "b"] {
        let object = DynamicObject::new(name, &missing_kind());
        eventually(SOON, || async { objects.create(&PostParams::default(), &object).await.map(drop) }).await;
        noted(&notes, &format!("second: {name}")).await;
    }
    assert!(!notes.lock().iter().any(|note| note.starts_with("first")), "{:?}", notes.lock());
    running.stop().await.expect("a graceful end");
}

/// A kind that cannot be read, and a kind that is not served, hold back only their own controllers.
#[tokio::test]
async fn controllers_that_can_work_do() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    secrets(&client).create(&PostParams::default(), &secret("s")).await.expect("created");
    let faults = Faults::before(client);
    faults.answer(Method::GET, "/secrets", 403, "Forbidden", None);
    let notes = Arc::new(Mutex::new(Vec::new()));
    let forbidden = {
        let notes = notes.clone();
        Controller::of::<Secret>(move |key: ObjectKey, _: Context<Secret>| {
            notes.lock().push(format!("secrets: {}", key.name()));
            async { Ok::<_, Error>(Action::done()) }
        })
    };
    let unserved = Controller::keyed::<()>("unserved", |_: ObjectKey, _: Context<()>| async {
        Ok::<_, Error>(Action::done())
    })
    .watch(Watch::reads_only(missing_kind()));
    let manager = Manager::new(faults.client())
        .namespaces(["default"])
        .controller(unserved)
        .controller(forbidden)
        .controller(noting("maps", &notes));
    let handle = manager.handle();
    let running = run_restricted(&cluster, &faults, manager).await;
    noted(&notes, "maps: a").await;
    noted(&notes, "secrets: s").await;
    handle.stop("unserved").await.expect("stopped while it asks the server");
    running.stop().await.expect("a graceful end");
}

/// `--controllers=-copies` leaves a controller out.
#[tokio::test]
async fn the_handle_of_a_controller_that_is_not_selected_has_ended() {
    let cluster = TestCluster::start().await;
    let reconcile = |_: ObjectKey, _: Context<ConfigMap>| async { Ok::<_, Error>(Action::done()) };
    let copies = Controller::of::<ConfigMap>(reconcile).named("copies");
    let handle = copies.handle();
    let manager = Manager::new(cluster.client()).controller(copies).select_controllers(["-copies", "*"]);
    let running = run(manager);
    handle.enqueue(ObjectKey::namespaced("default", "a"));
    let added = tokio::time::timeout(stretched(SOON), handle.watch(Watch::owned(kind::<Secret>()))).await;
    assert!(added.expect("an answer").expect_err("no controller").is_stopped());
    running.stop().await.expect("a graceful end");
}
