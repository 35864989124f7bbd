//! The outcomes of a reconcile: conflicts, requested delays, hot loops, panics outside of the reconcile.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, NamespaceCondition, Secret};
use kube_client::api::{DeleteParams, PatchParams};
use kube_core::{ResourceExt, params::Patch};
use serde_json::{Value, json};
use tokio::time::Instant;
use windlass_runtime::{
    Action, BoxError, Context, Controller, Error, Manager, ObjectKey, OperationResult, Permission,
    RateLimiter, Result, Verb, source::Source,
};
use windlass_test::{TestCluster, eventually};

use crate::{
    fault::Faults,
    fixture::{
        SOON, config_maps, create_config_map, expect_eq, metric, run, run_declared, run_restricted, secret,
    },
};

fn counter(text: &str, name: &str) -> u64 {
    metric(text, &format!("{name}{{controller=\"configmap\"}}"))
}

/// A conflict is requeued with back-off and counted as such, not as an error.
#[tokio::test]
async fn a_conflict_is_no_error() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let faults = Faults::before(cluster.client());
    for _ in 0..3 {
        faults.answer(Method::PATCH, "/configmaps/a", 409, "Conflict", None);
    }
    let controller = Controller::of::<ConfigMap>(|key: ObjectKey, cx: Context<ConfigMap>| async move {
        let patch = Patch::Merge(json!({ "data": { "seen": "yes" } }));
        cx.patch::<ConfigMap, _>(&key, &patch).await?;
        Ok::<_, Error>(Action::done())
    })
    .needs(Permission::to::<ConfigMap>([Verb::Patch]));
    let manager = Manager::new(faults.client()).controller(controller);
    let metrics = manager.metrics().clone();
    let running = run_restricted(&cluster, &faults, manager).await;
    eventually(SOON, || async {
        let map = config_maps(&cluster.client()).get("a").await.map_err(|e| e.to_string())?;
        expect_eq(map.data.is_some(), true).map_err(|e| e.to_string())
    })
    .await;
    let text = metrics.render();
    assert_eq!(counter(&text, "windlass_reconcile_conflicts_total"), 3);
    assert_eq!(counter(&text, "controller_runtime_reconcile_errors_total"), 0);
    running.stop().await.expect("a graceful end");
}

/// The error chooses the time of the retry.
#[tokio::test]
async fn an_error_may_say_when_it_is_retried() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let began = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let controller = {
        let began = began.clone();
        Controller::of::<ConfigMap>(move |_: ObjectKey, _: Context<ConfigMap>| {
            let nth = {
                let mut began = began.lock();
                began.push(Instant::now());
                began.len()
            };
            async move {
                if nth > 1 {
                    return Ok(Action::done());
                }
                Err(Error::other("the store is in maintenance").retry_after(Duration::from_millis(300)))
            }
        })
    };
    let running = cluster
        .run_restricted(Manager::new(cluster.client()).namespaces(["default"]).controller(controller))
        .await;
    eventually(SOON, || async { expect_eq(began.lock().len(), 2).map_err(|e| e.to_string()) }).await;
    let began = began.lock().clone();
    let pause = began[1] - began[0];
    assert!(pause >= Duration::from_millis(300), "{pause:?}, where the back-off would take 5 ms");
    running.stop().await.expect("a graceful end");
}

/// A server that is overloaded asks for up to 32 s. The client hands on an answer that asks for more than 10 s.
#[tokio::test(start_paused = true)]
async fn a_key_waits_for_as_long_as_the_server_asks() {
    check_wait(|cx, key, patch| async move {
        cx.patch::<ConfigMap, _>(&key, &patch).await?;
        Ok(())
    })
    .await;
}

/// An error of kube's client does not have the headers of the answer.
#[tokio::test(start_paused = true)]
async fn a_key_waits_for_as_long_as_the_server_asks_kubes_client() {
    check_wait(|cx, key, patch| async move {
        let maps = config_maps(cx.client());
        maps.patch(key.name(), &PatchParams::default(), &patch).await?;
        Ok(())
    })
    .await;
}

/// Checks that a key waits for 30 s after the server has refused `write` with that time.
async fn check_wait<F>(
    write: impl Fn(Context<ConfigMap>, ObjectKey, Patch<Value>) -> F + Copy + Send + Sync + 'static,
) where
    F: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let faults = Faults::before(cluster.client());
    faults.answer(Method::PATCH, "/configmaps/a", 429, "TooManyRequests", Some(30));
    let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
    let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
        let tell = tell.clone();
        async move {
            if key.name() == "a" {
                let _ = tell.send(Instant::now());
                write(cx, key, Patch::Merge(json!({ "data": { "seen": "yes" } }))).await?;
            }
            Ok::<_, BoxError>(Action::done())
        }
    });
    let running = run(Manager::new(faults.client()).controller(controller));
    let (first, second) = (told.recv().await.expect("reconciled"), told.recv().await.expect("reconciled"));
    let pause = second - first;
    assert!(pause >= Duration::from_secs(30), "{pause:?}");
    assert!(pause < Duration::from_secs(40), "{pause:?}");
    running.stop().await.expect("a graceful end");
}

/// A key that is reconciled again and again, each time with a write, is slowed down and counted.
#[tokio::test]
async fn a_hot_loop_is_slowed_down_unless_it_is_allowed() {
    for allowed in [false, true] {
        let cluster = TestCluster::start().await;
        create_config_map(&cluster.client(), "a").await;
        let rounds = Arc::new(AtomicUsize::new(0));
        let controller = {
            let rounds = rounds.clone();
            Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
                let round = rounds.fetch_add(1, Ordering::SeqCst);
                async move {
                    // The write of the reconcile is the next event.
                    let patch = Patch::Merge(json!({ "data": { "round": round.to_string() } }));
                    cx.patch::<ConfigMap, _>(&key, &patch).await?;
                    Ok::<_, Error>(Action::done())
                }
            })
        };
        let controller = controller.needs(Permission::to::<ConfigMap>([Verb::Patch]));
        let controller = if allowed { controller.allow_hot_loops() } else { controller };
        let manager = Manager::new(cluster.client()).namespaces(["default"]).controller(controller);
        let metrics = manager.metrics().clone();
        let running = cluster.run_restricted(manager).await;
        let hot = || counter(&metrics.render(), "windlass_hot_loops_total");
        if allowed {
            eventually(SOON, || async {
                if rounds.load(Ordering::SeqCst) > 40 { Ok(()) } else { Err("not that often") }
            })
            .await;
            assert_eq!(hot(), 0);
        } else {
            eventually(SOON, || async { expect_eq(hot(), 1).map_err(|e| e.to_string()) }).await;
            let rounds = rounds.load(Ordering::SeqCst);
            assert!((20..30).contains(&rounds), "{rounds}");
        }
        running.stop().await.expect("a graceful end");
    }
}

/// A key whose `Display` panics on the first call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Fragile(u32);

static PRINTED: AtomicUsize = AtomicUsize::new(0);

impl fmt::Display for Fragile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert!(PRINTED.fetch_add(1, Ordering::SeqCst) > 0, "the first time panics");
        write!(f, "{}", self.0)
    }
}

/// A panic outside of the reconcile restarts the worker, and the key is not lost.
#[tokio::test]
async fn a_worker_that_panics_is_restarted_and_keeps_its_key() {
    let cluster = TestCluster::start().await;
    let reconciled = Arc::new(AtomicUsize::new(0));
    let controller = {
        let reconciled = reconciled.clone();
        Controller::keyed::<()>("fragile", move |_: Fragile, _: Context<()>| {
            reconciled.fetch_add(1, Ordering::SeqCst);
            async { Ok::<_, Error>(Action::done()) }
        })
        .rate_limiter(RateLimiter::from_fn(|_| Duration::from_millis(1)))
    };
    controller.handle().enqueue(Fragile(1));
    let manager = Manager::new(cluster.client()).controller(controller);
    let metrics = manager.metrics().clone();
    let running = cluster.run_restricted(manager).await;
    eventually(SOON, || async { expect_eq(reconciled.load(Ordering::SeqCst), 1).map_err(|e| e.to_string()) })
        .await;
    let panics = "windlass_task_panics_total{task=\"worker of controller fragile\"}";
    assert_eq!(metric(&metrics.render(), panics), 1);
    running.stop().await.expect("a graceful end");
}

/// A panic in a stream of keys ends the manager with an error that names the stream.
#[tokio::test]
async fn a_stream_of_keys_that_panics_ends_the_manager() {
    let cluster = TestCluster::start().await;
    let keys = futures::stream::once(async { panic!("no more keys") });
    let controller =
        Controller::keyed::<()>("fed", |_: String, _: Context<()>| async { Ok::<_, Error>(Action::done()) })
            .source(Source::keys(keys));
    let error =
        run(Manager::new(cluster.client()).controller(controller)).ended().await.expect_err("an error");
    assert!(error.to_string().contains("a source of controller \"fed\" panicked: no more keys"), "{error}");
}

/// The result of a write tells whether the object was created, updated or left alone.
#[tokio::test]
async fn writes_say_what_they_did() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let (send, mut received) = tokio::sync::mpsc::unbounded_channel();
    let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
        let send = send.clone();
        async move {
            if let Some(parent) = cx.get(&key)? {
                let _ = send.send((cx.clone(), parent));
            }
            Ok::<_, Error>(Action::done())
        }
    })
    .owns::<Secret>()
    .needs(Permission::to::<Secret>([Verb::Create, Verb::Update]))
    .needs(Permission::to::<Namespace>([Verb::Get]))
    .needs(Permission::status_of::<Namespace>());
    let running = run_declared(&cluster, Manager::new(client.clone()).controller(controller)).await;
    let (cx, parent) = received.recv().await.expect("reconciled");

    let set = |value: &'static str| {
        move |secret: &mut Secret| -> Result<()> {
            secret.string_data = None;
            secret.annotations_mut().insert("value".to_owned(), value.to_owned());
            Ok(())
        }
    };
    for (value, result) in [
        ("1", OperationResult::Created),
        ("1", OperationResult::Unchanged),
        ("2", OperationResult::Updated),
        ("2", OperationResult::Unchanged),
    ] {
        let upserted = cx.create_or_update(secret("child"), set(value)).await.expect("written");
        assert_eq!(upserted.operation, result, "{value}");
        assert_eq!(upserted.object.annotations()["value"], value);
    }

    let namespaces: kube_client::Api<Namespace> = kube_client::Api::all(client.clone());
    let namespace = namespaces.get("default").await.expect("there");
    let mut status = namespace.status.clone().unwrap_or_default();
    // No cache shows namespaces, and the object that was read may have been changed in place.
    assert_eq!(cx.update_status(&namespace, &status).await.expect("written"), OperationResult::Updated);
    let condition =
        NamespaceCondition { type_: "Odd".to_owned(), status: "True".to_owned(), ..Default::default() };
    status.conditions = Some(vec![condition]);
    assert_eq!(cx.update_status(&namespace, &status).await.expect("written"), OperationResult::Updated);
    let mut other = namespace.clone();
    other.metadata.uid = Some("another".to_owned());
    status.phase = None;
    assert_eq!(cx.update_status(&other, &status).await.expect("no error"), OperationResult::Replaced);
    other.metadata.name = Some("gone".to_owned());
    assert_eq!(cx.update_status(&other, &status).await.expect("no error"), OperationResult::Gone);
    config_maps(&client).delete("a", &DeleteParams::default()).await.expect("deleted");
    drop(parent);
    running.stop().await.expect("a graceful end");
}
