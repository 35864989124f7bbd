use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_client::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use kube_core::ResourceExt;
use parking_lot::Mutex;
use serde_json::json;
use tokio::time::Instant;
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey, Permission, Result, Verb, owner::Owned,
};
use windlass_test::{TestCluster, eventually};

use crate::{
    fault::Faults,
    fixture::{
        SOON, config_maps, create_config_map, expect_eq, metric, run_restricted, secret, secret_count,
    },
};

/// Keeps `data.count` secrets. After the first write, the watches deliver no events.
async fn keep(key: ObjectKey, cx: Context<ConfigMap>, faults: Faults) -> Result<Action> {
    let Some(parent) = cx.get_not_terminating(&key)? else { return Ok(Action::done()) };
    let wanted: usize = parent.data.as_ref().and_then(|data| data.get("count")?.parse().ok()).unwrap_or(0);
    let secrets = cx.owned_by::<Secret>(&parent)?.not_terminating();
    if secrets.len() != wanted {
        faults.hold_watches();
    }
    for n in secrets.len()..wanted {
        let mut new = secret("");
        new.metadata.name = None;
        new.metadata.generate_name = Some(format!("{}-{n}-", key.name()));
        cx.create(new.controlled_by(&*parent)?).await?;
    }
    for extra in secrets.newest_first().take(secrets.len().saturating_sub(wanted)) {
        cx.delete(extra).await?;
    }
    Ok(Action::done())
}

async fn set_count(api: &Api<ConfigMap>, count: usize) {
    let patch = Patch::Merge(json!({ "data": { "count": count.to_string() } }));
    api.patch("a", &PatchParams::default(), &patch).await.expect("patched");
}

#[tokio::test]
async fn a_watch_that_lags_makes_nothing_twice() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let faults = Faults::before(client.clone());
    let controller = {
        let faults = faults.clone();
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            keep(key, cx, faults.clone())
        })
        .owns::<Secret>()
        .needs(Permission::to::<Secret>([Verb::Create, Verb::Delete]))
        .write_barrier_timeout(Duration::from_millis(20))
    };
    let handle = controller.handle();
    let manager = Manager::new(faults.client()).controller(controller);
    let metrics = manager.metrics().clone();
    let running = run_restricted(&cluster, &faults, manager).await;
    let rounds = || {
        metric(
            &metrics.render(),
            "controller_runtime_reconcile_total{controller=\"configmap\",result=\"success\"}",
        )
    };
    let again_and_again = async || {
        for _ in 0..5 {
            let before = rounds();
            handle.enqueue(ObjectKey::namespaced("default", "a"));
            eventually(SOON, || async { if rounds() > before { Ok(()) } else { Err("not reconciled") } })
                .await;
        }
    };

    set_count(&config_maps(&client), 3).await;
    eventually(SOON, || async { expect_eq(secret_count(&client).await, 3) }).await;
    again_and_again().await;
    assert_eq!(faults.count(&Method::POST, "/secrets"), 3, "created once each");

    faults.release_watches();
    set_count(&config_maps(&client), 1).await;
    eventually(SOON, || async { expect_eq(secret_count(&client).await, 1) }).await;
    again_and_again().await;
    assert_eq!(secret_count(&client).await, 1);
    assert_eq!(faults.count(&Method::DELETE, "/secrets"), 2, "deleted once each");
    assert_eq!(faults.count(&Method::POST, "/secrets"), 3);
    running.stop().await.expect("a graceful end");
}

/// A reconcile creates, reads, deletes and reads again while the watches deliver no events.
#[tokio::test]
async fn reads_in_a_reconcile_see_its_writes() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let faults = Faults::before(client.clone());
    let done = Arc::new(AtomicUsize::new(0));
    let controller = {
        let (done, faults) = (done.clone(), faults.clone());
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let (done, faults) = (done.clone(), faults.clone());
            async move {
                let Some(parent) = cx.get(&key)? else { return Ok(Action::done()) };
                faults.hold_watches();
                let count = |cx: &Context<ConfigMap>| cx.owned_by::<Secret>(&parent).map(|owned| owned.len());
                assert_eq!(count(&cx)?, 0);
                let first = cx.create(secret("one").controlled_by(&*parent)?).await?;
                // A write through the context's client counts as well.
                let api: Api<Secret> = Api::namespaced(cx.client().clone(), "default");
                api.create(&PostParams::default(), &secret("two").controlled_by(&*parent)?).await?;
                assert_eq!(cx.owned_by::<Secret>(&parent)?.names(), ["one", "two"]);
                let label = Patch::Merge(json!({ "metadata": { "labels": { "seen": "yes" } } }));
                api.patch("two", &PatchParams::default(), &label).await?;
                let two = cx.lister::<Secret>()?.get(&ObjectKey::namespaced("default", "two"))?;
                assert_eq!(two.expect("there").labels().get("seen").map(String::as_str), Some("yes"));
                cx.delete(&first).await?;
                api.delete("two", &DeleteParams::default()).await?;
                assert_eq!(count(&cx)?, 0);
                assert!(cx.lister::<Secret>()?.get(&ObjectKey::namespaced("default", "two"))?.is_none());
                done.fetch_add(1, Ordering::SeqCst);
                faults.release_watches();
                Ok::<_, Error>(Action::done())
            }
        })
        .owns::<Secret>()
        .needs(Permission::to::<Secret>([Verb::Create, Verb::Patch, Verb::Delete]))
    };
    let running =
        run_restricted(&cluster, &faults, Manager::new(faults.client()).controller(controller)).await;
    eventually(SOON, || async { if done.load(Ordering::SeqCst) > 0 { Ok(()) } else { Err("not through") } })
        .await;
    running.stop().await.expect("a graceful end");
}

/// A reconcile that writes and comes again at once, twice; gives back when each began, and how often the gate gave up.
async fn write_twice(hold: bool) -> (Vec<Instant>, u64) {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let faults = Faults::before(cluster.client());
    let begun = Arc::new(Mutex::new(Vec::new()));
    let controller = {
        let (begun, faults) = (begun.clone(), faults.clone());
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let (begun, faults) = (begun.clone(), faults.clone());
            async move {
                let nth = {
                    let mut begun = begun.lock();
                    begun.push(Instant::now());
                    begun.len()
                };
                if nth > 1 {
                    return Ok(Action::done());
                }
                if hold {
                    faults.hold_watches();
                }
                let parent = cx.get(&key)?.expect("there");
                cx.create(secret("one").controlled_by(&*parent)?).await?;
                Ok::<_, Error>(Action::requeue_after(Duration::from_millis(1)))
            }
        })
        .owns::<Secret>()
        .needs(Permission::to::<Secret>([Verb::Create]))
        .write_barrier_timeout(Duration::from_millis(400))
    };
    let manager = Manager::new(faults.client()).namespaces(["default"]).controller(controller);
    let metrics = manager.metrics().clone();
    let running = run_restricted(&cluster, &faults, manager).await;
    eventually(SOON, || async {
        if begun.lock().len() >= 2 { Ok(()) } else { Err("the gate never opened") }
    })
    .await;
    running.stop().await.expect("a graceful end");
    let times = begun.lock().clone();
    (times, metric(&metrics.render(), "windlass_read_your_writes_timeouts_total{controller=\"configmap\"}"))
}

#[tokio::test]
async fn the_gate_gives_up_in_time_and_counts_it() {
    let (begun, gave_up) = write_twice(true).await;
    assert!(begun[1] - begun[0] >= Duration::from_millis(400), "{:?}", begun[1] - begun[0]);
    assert!(gave_up >= 1);
}

#[tokio::test]
async fn the_gate_opens_when_the_watch_tells() {
    let (_, gave_up) = write_twice(false).await;
    assert_eq!(gave_up, 0);
}

/// A dry run deletes no object. `Api::delete` declares a dry run in the body; other requests use the query.
#[tokio::test]
async fn a_dry_run_is_no_write() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let (send, mut received) = tokio::sync::mpsc::unbounded_channel();
    let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
        let send = send.clone();
        async move {
            let api: Api<ConfigMap> = Api::namespaced(cx.client().clone(), "default");
            api.delete(key.name(), &DeleteParams { dry_run: true, ..DeleteParams::default() }).await?;
            let _ = send.send(cx.get(&key)?.is_some());
            Ok::<_, Error>(Action::done())
        }
    })
    .needs(Permission::to::<ConfigMap>([Verb::Delete]));
    let running = cluster.run_restricted(Manager::new(client).controller(controller)).await;
    assert_eq!(received.recv().await, Some(true), "the object is read as alive");
    running.stop_with_exact_rights().await.expect("a graceful end");
}

/// Creates secrets with generated names, until the caches and the new secrets together are `wanted` secrets of the ConfigMap.
async fn create_missing(cx: &Context<ConfigMap>, key: &ObjectKey, wanted: usize) -> Result<()> {
    let parent = cx.get(key)?.expect("there");
    let missing = wanted.saturating_sub(cx.owned_by::<Secret>(&parent)?.len());
    let creates = (0..missing).map(|_| {
        let mut new = secret("");
        new.metadata.name = None;
        new.metadata.generate_name = Some("a-".to_owned());
        let new = new.controlled_by(&*parent);
        async { cx.create(new?).await }
    });
    futures::future::try_join_all(creates).await.map(drop)
}

/// Builds a controller whose reconciles create the missing secrets. The first reconcile runs `first` instead, while watches and the
/// answers to creates are held back.
fn creator<F>(
    faults: &Faults,
    wanted: usize,
    first: impl FnOnce(Faults, ObjectKey, Context<ConfigMap>) -> F + Send + 'static,
) -> Controller
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let first = Mutex::new(Some(first));
    let faults = faults.clone();
    Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
        let first = first.lock().take();
        let faults = faults.clone();
        async move {
            if let Some(first) = first {
                faults.hold_watches();
                faults.hold_created();
                first(faults, key, cx).await?;
            } else {
                create_missing(&cx, &key, wanted).await?;
            }
            Result::<Action>::Ok(Action::done())
        }
    })
    .owns::<Secret>()
    .needs(Permission::to::<Secret>([Verb::Create]))
    .write_barrier_timeout(Duration::from_millis(20))
}

/// Runs the controller until a reconcile succeeded. Returns the number of creates, and the number of secrets.
async fn creates_until_success(
    cluster: &TestCluster,
    faults: &Faults,
    controller: Controller,
    meanwhile: impl AsyncFnOnce(),
) -> (usize, usize) {
    let manager = Manager::new(faults.client()).controller(controller);
    let metrics = manager.metrics().clone();
    let running = run_restricted(cluster, faults, manager).await;
    meanwhile().await;
    let success = "controller_runtime_reconcile_total{controller=\"configmap\",result=\"success\"}";
    eventually(SOON, || async {
        if metric(&metrics.render(), success) > 0 { Ok(()) } else { Err("no reconcile succeeded") }
    })
    .await;
    faults.release_watches();
    running.stop().await.expect("a graceful end");
    (faults.count(&Method::POST, "/secrets"), secret_count(&cluster.client()).await)
}

/// `try_join` drops the creates when the other future fails. By then, the server has stored the secrets.
#[tokio::test]
async fn creates_that_a_failure_drops_are_not_repeated() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let faults = Faults::before(cluster.client());
    let controller = creator(&faults, 2, async |faults: Faults, key, cx| {
        let refused = async {
            faults.stored(2).await;
            Err::<(), _>(Error::other("refused"))
        };
        let failed = futures::future::try_join(create_missing(&cx, &key, 2), refused).await;
        faults.release_created();
        failed.map(drop)
    });
    let (sent, stored) = creates_until_success(&cluster, &faults, controller, async || ()).await;
    assert_eq!((sent, stored), (2, 2), "creates sent, and secrets");
}

#[tokio::test]
async fn a_create_that_a_reconcile_timeout_drops_is_not_repeated() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let faults = Faults::before(cluster.client());
    // Closed when the first reconcile is dropped.
    let (running, mut dropped) = tokio::sync::mpsc::channel::<()>(1);
    let controller = creator(&faults, 1, async move |_, key, cx| {
        let _running = running;
        create_missing(&cx, &key, 1).await
    })
    .reconcile_timeout(Duration::from_millis(500));
    let release = async || {
        faults.stored(1).await;
        assert!(dropped.recv().await.is_none());
        faults.release_created();
    };
    let (sent, stored) = creates_until_success(&cluster, &faults, controller, release).await;
    assert_eq!((sent, stored), (1, 1), "creates sent, and secrets");
}

/// After a dropped create without an answer, the next create asks the server first.
#[tokio::test]
async fn a_dropped_create_whose_answer_is_lost_is_not_repeated() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let faults = Faults::before(cluster.client());
    let controller = creator(&faults, 1, async |faults: Faults, key, cx| {
        faults.lose_answer(Method::POST, "/secrets");
        tokio::select! {
            biased;
            created = create_missing(&cx, &key, 1) => created?,
            () = faults.stored(1) => {}
        }
        faults.release_created();
        Err(Error::other("dropped"))
    })
    .needs(Permission::to::<Secret>([Verb::List]))
    .write_barrier_timeout(SOON);
    let release = async || {
        let asks = || faults.count(&Method::GET, "/secrets?limit=500") > 0;
        eventually(SOON, || async { if asks() { Ok(()) } else { Err("the server was not asked") } }).await;
        faults.release_watches();
    };
    let (sent, stored) = creates_until_success(&cluster, &faults, controller, release).await;
    assert_eq!((sent, stored), (1, 1), "creates sent, and secrets");
}
