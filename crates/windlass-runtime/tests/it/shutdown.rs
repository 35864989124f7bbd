//! The stop of a manager, and of parts of a manager, in paused time.

use std::{convert::Infallible, sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey, RunContext, Runnable,
    informer::{CacheOptions, IndexFn},
    leader_election::LeaderElection,
    manager::Group,
};
use windlass_test::{TestCluster, eventually, stretched};

use crate::{
    fault::Faults,
    fixture::{SOON, create_config_map, expect_eq, metric, run},
};

/// A runnable that needs some time to end.
fn slow_to_end(
    name: &'static str,
    group: Group,
    time: Duration,
    ended: &Arc<Mutex<Vec<&'static str>>>,
) -> Runnable {
    let ended = ended.clone();
    let run = move |cx: RunContext| async move {
        cx.shutdown().requested().await;
        sleep(time).await;
        ended.lock().push(name);
        Ok::<_, Error>(())
    };
    Runnable::new(name, run).group(group)
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_hangs_leaves_time_for_other_parts_to_end() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let (begun, ended) = (Arc::new(Notify::new()), Arc::default());
    let controller = {
        let begun = begun.clone();
        Controller::of::<ConfigMap>(move |_: ObjectKey, _: Context<ConfigMap>| {
            begun.notify_one();
            std::future::pending::<Result<Action, Infallible>>()
        })
    };
    let manager = Manager::new(cluster.client())
        .controller(controller)
        .runnable(slow_to_end("flush", Group::Others, Duration::from_secs(4), &ended))
        .runnable(slow_to_end("webhook", Group::Webhooks, Duration::from_secs(2), &ended))
        .runnable(slow_to_end("scrape", Group::Http, Duration::from_secs(1), &ended));
    let running = cluster.run_restricted(manager).await;
    begun.notified().await;
    let asked = Instant::now();
    let error = running.stop().await.expect_err("the reconcile did not end");
    assert_eq!(error.to_string(), "not everything stopped within 30s: configmap ended by force");
    assert_eq!(*ended.lock(), ["flush", "webhook", "scrape"]);
    assert!(asked.elapsed() < Duration::from_secs(31), "{:?}", asked.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_that_waits_for_the_stop_of_another_part_ends_with_the_manager() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let asked = Arc::new(Notify::new());
    let other = {
        let asked = asked.clone();
        Runnable::new("other", move |cx: RunContext| async move {
            cx.shutdown().requested().await;
            asked.notify_one();
            sleep(Duration::from_secs(5)).await;
            Ok::<_, Error>(())
        })
    };
    let manager = Manager::new(cluster.client()).runnable(other);
    let (handle, result) = (manager.handle(), Arc::new(Mutex::new(None)));
    let controller = {
        let result = result.clone();
        Controller::of::<ConfigMap>(move |_: ObjectKey, _: Context<ConfigMap>| {
            let (handle, result) = (handle.clone(), result.clone());
            async move {
                let stopped = handle.stop("other").await;
                result.lock().get_or_insert(stopped.map_err(|error| error.is_stopped()));
                Ok::<_, Infallible>(Action::done())
            }
        })
    };
    let running = cluster.run_restricted(manager.controller(controller)).await;
    asked.notified().await;
    running.stop().await.expect("a graceful end");
    assert_eq!(*result.lock(), Some(Err(true)));
}

#[tokio::test(start_paused = true)]
async fn a_reconcile_may_stop_its_own_controller() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let manager = Manager::new(cluster.client());
    let (handle, took) = (manager.handle(), Arc::new(Mutex::new(None)));
    let controller = {
        let (handle, took) = (handle.clone(), took.clone());
        Controller::of::<ConfigMap>(move |_: ObjectKey, _: Context<ConfigMap>| {
            let (handle, took) = (handle.clone(), took.clone());
            async move {
                let asked = Instant::now();
                let stopped = handle.stop("configmap").await;
                took.lock().get_or_insert((asked.elapsed(), stopped.is_ok()));
                Ok::<_, Infallible>(Action::done())
            }
        })
    };
    let running = cluster.run_restricted(manager.controller(controller)).await;
    eventually(SOON, || async { expect_eq(*took.lock(), Some((Duration::ZERO, true))) }).await;
    // The controller ends after the reconcile.
    eventually(SOON, || async {
        match handle.stop("configmap").await {
            Err(error) if error.to_string().contains("no part called") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    running.stop().await.expect("a graceful end");
}

/// A counter that falls looks like a restart of the process.
#[tokio::test(start_paused = true)]
async fn the_counters_of_a_watch_that_ends_stay() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let idle = |name: &str, selector: &str| {
        let reconcile = |_: ObjectKey, _: Context<ConfigMap>| async { Ok::<_, Infallible>(Action::done()) };
        let options = CacheOptions::new().label_selector(selector.parse().expect("a selector"));
        Controller::of::<ConfigMap>(reconcile).named(name).options(options)
    };
    let manager = Manager::new(cluster.client()).controller(idle("one", "!x")).controller(idle("two", "!y"));
    let (handle, metrics) = (manager.handle(), manager.metrics().clone());
    let running = cluster.run_restricted(manager).await;
    let count = |series: &str| metric(&metrics.render(), series);
    let lists = "windlass_watch_lists_total{resource=\"configmaps\"}";
    let added = "windlass_cache_changes_total{resource=\"configmaps\",change=\"added\"}";
    eventually(SOON, || async { expect_eq((count(lists), count(added) > 1), (2, true)) }).await;
    let before = (count(lists), count(added));
    for name in ["one", "two"] {
        handle.stop(name).await.expect("stopped");
        assert_eq!((count(lists), count(added)), before, "after the stop of {name}");
    }
    assert_eq!(count("windlass_cache_objects{resource=\"configmaps\"}"), 0);
    running.stop().await.expect("a graceful end");
}

/// The release of the Lease and the last events wait for a server that does not answer.
#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_delays_no_stop_beyond_its_limit() {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let manager = Manager::new(faults.client())
        .leader_election(LeaderElection::new("operator").namespace("default"))
        .graceful_shutdown_timeout(Some(Duration::from_millis(2500)));
    let metrics = manager.metrics().clone();
    let running = run(manager);
    let leads = || metric(&metrics.render(), "leader_election_master_status{name=\"operator\"}");
    eventually(SOON, || async { expect_eq(leads(), 1) }).await;
    faults.cut_off();
    let asked = Instant::now();
    running.stop().await.expect("a graceful end");
    assert!(asked.elapsed() < Duration::from_millis(2500), "{:?}", asked.elapsed());
}

/// A function of a user blocks the task of a watch.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_watch_that_is_blocked_delays_no_stop_for_ever() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let (blocked, release) = (Arc::new(Notify::new()), std::sync::mpsc::channel::<()>());
    let (release, released) = (release.0, Mutex::new(release.1));
    let blocks = {
        let blocked = blocked.clone();
        IndexFn::new(move |_| {
            blocked.notify_one();
            let _ = released.lock().recv();
            Vec::new()
        })
    };
    let reconcile = |_: ObjectKey, _: Context<ConfigMap>| async { Ok::<_, Infallible>(Action::done()) };
    let controller =
        Controller::of::<ConfigMap>(reconcile).options(CacheOptions::new().index("blocks", blocks));
    let manager = Manager::new(cluster.client())
        .controller(controller)
        .graceful_shutdown_timeout(Some(Duration::from_secs(1)));
    let running = run(manager);
    blocked.notified().await;
    let asked = Instant::now();
    let error = running.stop().await.expect_err("the controller waits for the watch");
    assert_eq!(error.to_string(), "not everything stopped within 1s: configmap ended by force");
    assert!(asked.elapsed() < stretched(Duration::from_secs(5)), "{:?}", asked.elapsed());
    // The runtime of the test waits for its threads.
    drop(release);
}
