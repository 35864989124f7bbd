use std::{
    collections::BTreeSet,
    convert::Infallible,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU32, AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube_client::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube_core::{ApiResource, Resource, ResourceExt, metadata::PartialObjectMeta};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{sync::Notify, time::timeout};
use windlass_runtime::{
    Action, BoxError, Context, Controller, ControllerHandle, Error, KindRef, Manager, ObjectKey, Permission,
    Predicate, Reconciler, Result, Verb, Watch, informer::CacheOptions, kind, owner::Owned, source::Source,
};
use windlass_test::{TestCluster, eventually, stretched};

use crate::{
    fault::Faults,
    fixture::{
        SOON, config_map, config_maps, create_config_map, expect_eq, labelled, metric, run, run_declared,
        run_restricted, secret, secret_count, secrets,
    },
};

/// Notes the reconciled keys, and whether their objects existed.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn has(&self, line: &str) -> bool {
        self.0.lock().iter().any(|known| known == line)
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    async fn eventually(&self, line: &str) {
        eventually(SOON, || async {
            if self.has(line) { Ok(()) } else { Err(format!("{line:?} is not in {:?}", self.all())) }
        })
        .await;
    }
}

impl Reconciler<ConfigMap> for Notes {
    type Error = Error;

    async fn reconcile(&self, key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
        let there = cx.get(&key)?.is_some();
        self.0.lock().push(format!("{key} {}", if there { "there" } else { "gone" }));
        Ok(Action::done())
    }
}

#[tokio::test]
async fn what_is_there_what_comes_and_what_goes_is_reconciled() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "before").await;
    let notes = Notes::default();
    let running = cluster
        .run_restricted(Manager::new(cluster.client()).controller(Controller::of::<ConfigMap>(notes.clone())))
        .await;
    notes.eventually("default/before there").await;
    create_config_map(&cluster.client(), "after").await;
    notes.eventually("default/after there").await;
    config_maps(&cluster.client()).delete("before", &DeleteParams::default()).await.expect("deleted");
    notes.eventually("default/before gone").await;
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn reading_an_undeclared_kind_says_what_to_declare() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let said = Arc::new(Mutex::new(None));
    let controller = {
        let said = said.clone();
        Controller::of::<ConfigMap>(move |_: ObjectKey, cx: Context<ConfigMap>| {
            let said = said.clone();
            async move {
                let error = cx.lister::<Secret>().map(drop).expect_err("not declared");
                assert!(error.is_not_declared());
                *said.lock() = Some(error.to_string());
                Ok::<_, Infallible>(Action::done())
            }
        })
    };
    let running = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
    let message = eventually(SOON, || async { said.lock().clone().ok_or("nothing said yet") }).await;
    assert_eq!(
        message,
        "controller \"configmap\" reads Secret but did not declare it; add `.owns::<Secret>()`, \
         `.watches::<Secret>(..)` or `.reads::<Secret>()` where the controller is built"
    );
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn an_undeclared_read_of_metadata_is_named_and_not_retried() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let said = Arc::new(Mutex::new(Vec::new()));
    let texts = said.clone();
    let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
        let read = cx.lister::<PartialObjectMeta<Secret>>().map(drop);
        // The server has ConfigMaps in other namespaces.
        if key.namespace() == Some("default") {
            texts.lock().push(format!("{key} {}", read.as_ref().expect_err("not declared")));
        }
        std::future::ready(read.map(|()| Action::done()))
    });
    let running = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
    eventually(SOON, || async { said.lock().first().cloned().ok_or("nothing said yet") }).await;
    // A retry would come before: the first back-off takes 5 ms.
    create_config_map(&cluster.client(), "b").await;
    let is_b = |text: &String| text.starts_with("default/b ");
    eventually(SOON, || async {
        said.lock().iter().any(is_b).then_some(()).ok_or("b is not reconciled yet")
    })
    .await;
    running.stop().await.expect("a graceful end");
    let message = "controller \"configmap\" reads PartialObjectMeta<Secret> but did not declare it; add \
                   `.owns::<PartialObjectMeta<Secret>>()`, `.watches::<PartialObjectMeta<Secret>>(..)` or \
                   `.reads::<PartialObjectMeta<Secret>>()` where the controller is built";
    assert_eq!(*said.lock(), [format!("default/a {message}"), format!("default/b {message}")]);
}

#[tokio::test]
async fn a_change_of_an_owned_object_concerns_its_owner() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let parent = create_config_map(&client, "parent").await;
    let notes = Notes::default();
    let running = cluster
        .run_restricted(
            Manager::new(client.clone())
                .controller(Controller::of::<ConfigMap>(notes.clone()).owns::<Secret>()),
        )
        .await;
    notes.eventually("default/parent there").await;
    let count = || notes.all().iter().filter(|line| *line == "default/parent there").count();
    let before = count();
    secrets(&client).create(&PostParams::default(), &secret("not-owned")).await.expect("created");
    let owned = secret("owned").controlled_by(&parent).expect("owned");
    secrets(&client).create(&PostParams::default(), &owned).await.expect("created");
    eventually(SOON, || async { if count() > before { Ok(()) } else { Err("not reconciled") } }).await;
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_mapper_says_whom_a_change_concerns_before_and_after() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let notes = Notes::default();
    let controller = Controller::of::<ConfigMap>(notes.clone()).watches::<Secret>(|secret, _| {
        let target = secret.labels().get("target").map(|name| ObjectKey::namespaced("default", name));
        Ok(target.into_iter().collect())
    });
    let running = cluster.run_restricted(Manager::new(client.clone()).controller(controller)).await;
    let labelled = |target: &str| {
        let mut secret = secret("s");
        secret.labels_mut().insert("target".to_owned(), target.to_owned());
        secret
    };
    secrets(&client).create(&PostParams::default(), &labelled("one")).await.expect("created");
    notes.eventually("default/one gone").await;
    notes.0.lock().clear();
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "target": "two" } } }));
    secrets(&client).patch("s", &PatchParams::default(), &patch).await.expect("patched");
    notes.eventually("default/two gone").await;
    notes.eventually("default/one gone").await;
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_predicate_keeps_events_from_the_queue() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let wanted: Predicate = Predicate::labels("watched=yes".parse().expect("a selector"));
    let notes = Notes::default();
    let controller = Controller::of::<ConfigMap>(notes.clone()).predicate(wanted);
    let running = cluster.run_restricted(Manager::new(client.clone()).controller(controller)).await;
    create_config_map(&client, "plain").await;
    let map = labelled(config_map("marked"), "watched", "yes");
    config_maps(&client).create(&PostParams::default(), &map).await.expect("created");
    notes.eventually("default/marked there").await;
    assert!(!notes.has("default/plain there"), "plain came first, and was not queued: {:?}", notes.all());
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn failures_panics_and_timeouts_are_tried_again_and_counted() {
    let cluster = TestCluster::start().await;
    for name in ["fails", "panics", "hangs", "works"] {
        create_config_map(&cluster.client(), name).await;
    }
    let tries = Arc::new(Mutex::new(Vec::<String>::new()));
    let controller = {
        let tries = tries.clone();
        Controller::of::<ConfigMap>(move |key: ObjectKey, _: Context<ConfigMap>| {
            let tries = tries.clone();
            async move {
                let nth = {
                    let mut tries = tries.lock();
                    tries.push(key.name().to_owned());
                    tries.iter().filter(|name| *name == key.name()).count()
                };
                match key.name() {
                    "fails" if nth <= 2 => Err(BoxError::from("out of luck")),
                    "panics" if nth <= 2 => panic!("on purpose"),
                    "hangs" if nth == 1 => std::future::pending().await,
                    _ => Ok(Action::done()),
                }
            }
        })
        .reconcile_timeout(Duration::from_millis(200))
    };
    let manager = Manager::new(cluster.client()).controller(controller);
    let metrics = manager.metrics().clone();
    let running = cluster.run_restricted(manager).await;
    eventually(SOON, || async {
        let tries = tries.lock().clone();
        let count = |name: &str| tries.iter().filter(|tried| *tried == name).count();
        expect_eq([count("fails"), count("panics"), count("hangs"), count("works")], [3, 3, 2, 1])
    })
    .await;
    eventually(SOON, || async {
        let text = metrics.render();
        let of =
            |name: &str| metric(&text, &format!("controller_runtime_{name}{{controller=\"configmap\"}}"));
        expect_eq(
            [
                of("reconcile_errors_total"),
                of("reconcile_panics_total"),
                of("reconcile_timeouts_total"),
                of("terminal_reconcile_errors_total"),
                metric(
                    &text,
                    "controller_runtime_reconcile_total{controller=\"configmap\",result=\"error\"}",
                ),
            ],
            [5, 2, 1, 0, 5],
        )
    })
    .await;
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_terminal_error_waits_for_a_change() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "bad").await;
    let tries = Arc::new(AtomicU32::new(0));
    let controller = {
        let tries = tries.clone();
        Controller::of::<ConfigMap>(move |key: ObjectKey, _: Context<ConfigMap>| {
            if key.name() == "bad" {
                tries.fetch_add(1, Ordering::SeqCst);
            }
            async move {
                if key.name() == "bad" {
                    Err(Error::terminal("it makes no sense"))
                } else {
                    Ok(Action::done())
                }
            }
        })
    };
    let manager = Manager::new(client.clone()).controller(controller);
    let metrics = manager.metrics().clone();
    let running = cluster.run_restricted(manager).await;
    let terminal = || {
        metric(
            &metrics.render(),
            "controller_runtime_terminal_reconcile_errors_total{controller=\"configmap\"}",
        )
    };
    eventually(SOON, || async { expect_eq(terminal(), 1) }).await;
    let retries =
        metric(&metrics.render(), "workqueue_retries_total{name=\"configmap\",controller=\"configmap\"}");
    assert_eq!(retries, 0, "not queued again");
    let patch = Patch::Merge(json!({ "data": { "x": "y" } }));
    config_maps(&client).patch("bad", &PatchParams::default(), &patch).await.expect("patched");
    eventually(SOON, || async { expect_eq(tries.load(Ordering::SeqCst), 2) }).await;
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_requeue_comes_after_its_time() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let times = Arc::new(Mutex::new(Vec::new()));
    let controller = {
        let times = times.clone();
        Controller::of::<ConfigMap>(move |_: ObjectKey, _: Context<ConfigMap>| {
            times.lock().push(tokio::time::Instant::now());
            async { Ok::<_, Infallible>(Action::requeue_after(Duration::from_millis(300))) }
        })
    };
    let running = cluster
        .run_restricted(Manager::new(cluster.client()).namespaces(["default"]).controller(controller))
        .await;
    eventually(SOON, || async { if times.lock().len() >= 3 { Ok(()) } else { Err("not three times yet") } })
        .await;
    let times = times.lock().clone();
    assert!(times[1] - times[0] >= Duration::from_millis(300), "{:?}", times[1] - times[0]);
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn keys_are_worked_on_together_but_never_one_key_twice() {
    let cluster = TestCluster::start().await;
    for n in 0..8 {
        create_config_map(&cluster.client(), &format!("c{n}")).await;
    }
    let (now, most, twice) =
        (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(BTreeSet::new())));
    let overlaps = Arc::new(AtomicUsize::new(0));
    let rounds = Arc::new(AtomicUsize::new(0));
    let controller = {
        let (now, most, twice, overlaps, rounds) =
            (now.clone(), most.clone(), twice.clone(), overlaps.clone(), rounds.clone());
        Controller::of::<ConfigMap>(move |key: ObjectKey, _: Context<ConfigMap>| {
            let (now, most, twice, overlaps, rounds) =
                (now.clone(), most.clone(), twice.clone(), overlaps.clone(), rounds.clone());
            async move {
                if !twice.lock().insert(key.clone()) {
                    overlaps.fetch_add(1, Ordering::SeqCst);
                }
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                tokio::time::sleep(Duration::from_millis(5)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                twice.lock().remove(&key);
                rounds.fetch_add(1, Ordering::SeqCst);
                Ok::<_, Infallible>(Action::requeue_after(Duration::from_millis(1)))
            }
        })
        .max_concurrent_reconciles(4)
    };
    let running = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
    eventually(SOON, || async { if rounds.load(Ordering::SeqCst) > 100 { Ok(()) } else { Err("too few") } })
        .await;
    running.stop().await.expect("a graceful end");
    assert_eq!(overlaps.load(Ordering::SeqCst), 0);
    assert_eq!(most.load(Ordering::SeqCst), 4);
}

/// Values in a reconcile function are dropped with the manager, even a handle of the function's own
/// controller.
#[tokio::test]
async fn a_controller_that_holds_its_own_handle_is_freed() {
    let cluster = TestCluster::start().await;
    let (kept, handle) = (Arc::new(AtomicU32::new(0)), Arc::new(OnceLock::new()));
    let controller = {
        let (kept, handle) = (kept.clone(), handle.clone());
        Controller::<String>::keyed("again", move |_: String, _: Context<()>| {
            if kept.fetch_add(1, Ordering::SeqCst) == 0 {
                let handle: Option<&ControllerHandle<String>> = handle.get();
                handle.expect("set before").enqueue("second".to_owned());
            }
            async { Ok::<_, Infallible>(Action::done()) }
        })
    };
    let own = handle.get_or_init(|| controller.handle()).clone();
    let running = run_declared(&cluster, Manager::new(cluster.client()).controller(controller)).await;
    own.enqueue("first".to_owned());
    eventually(SOON, || async { expect_eq(kept.load(Ordering::SeqCst), 2) }).await;
    running.stop().await.expect("a graceful end");
    drop((own, handle));
    eventually(SOON, || async { expect_eq(Arc::strong_count(&kept), 1) }).await;
}

#[tokio::test]
async fn watches_come_and_go_while_the_controller_runs() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let notes = Arc::new(Mutex::new(Vec::<String>::new()));
    let controller = {
        let notes = notes.clone();
        Controller::<String>::keyed("uids", move |uid: String, _: Context<()>| {
            notes.lock().push(uid);
            async { Ok::<_, Infallible>(Action::done()) }
        })
    };
    // A watch that comes later is not known when the rights are written.
    let controller = controller.needs(Permission::to::<ConfigMap>([Verb::List, Verb::Watch]));
    let handle = controller.handle();
    handle.enqueue("early".to_owned());
    let running = cluster.run_restricted(Manager::new(client.clone()).controller(controller)).await;
    let resource = ApiResource::erase::<ConfigMap>(&());
    let metadata = KindRef::dynamic(&resource).metadata();
    let watch = Watch::mapped_raw(metadata, |object, _| Ok(vec![object.uid().to_owned()]));
    let id = handle.watch(watch).await.expect("added");
    let first = create_config_map(&client, "a").await.uid().expect("a uid");
    eventually(SOON, || async { if notes.lock().contains(&first) { Ok(()) } else { Err("not told") } }).await;
    assert!(notes.lock().contains(&"early".to_owned()));
    handle.unwatch(id);
    let second = create_config_map(&client, "b").await.uid().expect("a uid");
    handle.enqueue("marker".to_owned());
    eventually(SOON, || async {
        if notes.lock().contains(&"marker".to_owned()) { Ok(()) } else { Err("not told") }
    })
    .await;
    assert!(!notes.lock().contains(&second));
    running.stop().await.expect("a graceful end");
}

/// The key is reconciled before the watch is added, and has no other event.
#[tokio::test]
async fn a_read_of_a_kind_that_a_handle_declares_later_is_repeated() {
    let cluster = TestCluster::start().await;
    let (failed, done) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let controller = {
        let (failed, done) = (failed.clone(), done.clone());
        Controller::<String>::keyed("late", move |_: String, cx: Context<()>| {
            let read = cx.lister::<Secret>().map(drop);
            if read.is_ok() { &done } else { &failed }.notify_one();
            std::future::ready(read.map(|()| Action::done()))
        })
    };
    let controller = controller.needs(Permission::to::<Secret>([Verb::List, Verb::Watch]));
    let handle = controller.handle();
    handle.enqueue("key".to_owned());
    let running = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
    failed.notified().await;
    handle.watch(Watch::reads_only(kind::<Secret>())).await.expect("added");
    timeout(stretched(SOON), done.notified()).await.expect("the key is reconciled again");
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn keys_come_from_elsewhere_too() {
    let cluster = TestCluster::start().await;
    let notes = Notes::default();
    let keys = futures::stream::iter(["x", "y"].map(|name| ObjectKey::namespaced("default", name)));
    let running = cluster
        .run_restricted(
            Manager::new(cluster.client())
                .controller(Controller::of::<ConfigMap>(notes.clone()).source(Source::keys(keys))),
        )
        .await;
    notes.eventually("default/x gone").await;
    notes.eventually("default/y gone").await;
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_conflict_is_tried_again() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let faults = Faults::before(cluster.client());
    faults.answer(Method::POST, "/secrets", 409, "Conflict", None);
    let controller = Controller::of::<ConfigMap>(|key: ObjectKey, cx: Context<ConfigMap>| async move {
        let Some(parent) = cx.get(&key)? else { return Ok(Action::done()) };
        if cx.owned_by::<Secret>(&parent)?.is_empty() {
            cx.create(secret(key.name()).controlled_by(&*parent)?).await?;
        }
        Ok::<_, Error>(Action::done())
    })
    .owns::<Secret>()
    .needs(Permission::to::<Secret>([Verb::Create]));
    let running =
        run_restricted(&cluster, &faults, Manager::new(faults.client()).controller(controller)).await;
    eventually(SOON, || async { expect_eq(secret_count(&cluster.client()).await, 1) }).await;
    assert_eq!(faults.count(&Method::POST, "/secrets"), 2);
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn two_controllers_share_one_watch() {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let (one, two) = (Notes::default(), Notes::default());
    let manager = Manager::new(faults.client())
        .controller(Controller::of::<ConfigMap>(one.clone()).named("one"))
        .controller(Controller::of::<ConfigMap>(two.clone()).named("two"));
    let running = run_restricted(&cluster, &faults, manager).await;
    create_config_map(&cluster.client(), "a").await;
    one.eventually("default/a there").await;
    two.eventually("default/a there").await;
    let watches = faults
        .seen()
        .iter()
        .filter(|line| line.contains("/configmaps") && line.contains("watch=true"))
        .count();
    assert_eq!(watches, 1, "{:?}", faults.seen());
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_kind_that_is_not_served_ends_the_manager_in_time_and_says_why() {
    let cluster = TestCluster::start().await;
    let mut resource = ApiResource::erase::<ServiceAccount>(&());
    resource.plural = "nosuchthings".to_owned();
    resource.kind = "NoSuchThing".to_owned();
    let controller = Controller::of::<ConfigMap>(Notes::default())
        .watch(Watch::reads_only(KindRef::dynamic(&resource).metadata()))
        .cache_sync_timeout(Duration::from_millis(300));
    let error =
        run(Manager::new(cluster.client()).controller(controller)).ended().await.expect_err("it cannot work");
    let message = error.to_string();
    assert!(message.contains("NoSuchThing") && message.contains("CRD"), "{message}");
}

#[test]
fn kinds_that_are_watched_are_known() {
    let controller = Controller::of::<ConfigMap>(Notes::default()).owns::<Secret>();
    let kinds: Vec<_> = controller.watched().map(|resource| resource.kind.clone()).collect();
    assert_eq!(kinds, ["ConfigMap", "Secret"]);
    assert_eq!(ConfigMap::kind(&()), "ConfigMap");
}

/// When the caller stops waiting for a new watch, the controller drops the watch, because no caller could
/// remove it.
#[tokio::test]
async fn a_watch_that_no_caller_waits_for_is_not_added() {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let controller = Controller::<String>::keyed("uids", |_: String, _: Context<()>| async {
        Ok::<_, Infallible>(Action::done())
    });
    let handle = controller.handle();
    let running = run(Manager::new(faults.client()).controller(controller));
    let pods = |selector: &str| {
        let options = CacheOptions::new().label_selector(selector.parse().expect("a selector"));
        Watch::mapped(kind::<Secret>(), |secret, _| Ok(vec![secret.name_any()])).options(options)
    };
    faults.hold_watches();
    let wait = timeout(Duration::from_millis(500), handle.watch(pods("a=b")));
    wait.await.expect_err("the watch tells nothing");
    faults.release_watches();
    handle.watch(pods("a=c")).await.expect("no other watch of the kind is left");
    running.stop().await.expect("a graceful end");
}
