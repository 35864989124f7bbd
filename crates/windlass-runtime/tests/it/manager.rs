use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_client::api::ListParams;
use parking_lot::Mutex;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, oneshot},
    time::Instant,
};
use windlass_runtime::{
    Action, BoxError, Context, Controller, Error, Manager, ObjectKey, RateLimiter, RunContext, Runnable,
    leader_election::LeaderElection,
    manager::Group,
    source::{Poller, Timer},
};
use windlass_test::{TestCluster, eventually, stretched};

use crate::{
    fault::Faults,
    fixture::{Running, SOON, config_maps, create_config_map, run, run_declared, run_restricted},
    webhooks::free_port,
};

async fn idle(_: ObjectKey, _: Context<ConfigMap>) -> Result<Action, Error> {
    Ok(Action::done())
}

/// Returns a runnable that notes its begin and its shutdown.
fn noted(name: &'static str, group: Group, notes: &Arc<Mutex<Vec<String>>>) -> Runnable {
    let notes = notes.clone();
    Runnable::new(name, move |cx: RunContext| async move {
        notes.lock().push(format!("{name} begins"));
        cx.shutdown().requested().await;
        notes.lock().push(format!("{name} ends"));
        Ok::<_, Error>(())
    })
    .group(group)
}

#[tokio::test]
async fn groups_stop_in_the_reverse_of_their_order() {
    let cluster = TestCluster::start().await;
    let notes = Arc::new(Mutex::new(Vec::new()));
    let manager = Manager::new(cluster.client())
        .runnable(noted("leader", Group::LeaderElected, &notes))
        .runnable(noted("other", Group::Others, &notes))
        .runnable(noted("webhook", Group::Webhooks, &notes))
        .runnable(noted("http", Group::Http, &notes));
    let handle = manager.handle();
    let running = cluster.run_restricted(manager).await;
    eventually(SOON, || async {
        if notes.lock().len() == 4 { Ok(()) } else { Err(format!("{:?}", notes.lock())) }
    })
    .await;
    handle.add_runnable(noted("late", Group::Others, &notes)).expect("it runs");
    eventually(SOON, || async {
        if notes.lock().len() == 5 { Ok(()) } else { Err(format!("{:?}", notes.lock())) }
    })
    .await;
    running.stop().await.expect("a graceful end");
    let ended: Vec<_> = notes.lock().iter().filter(|note| note.ends_with("ends")).cloned().collect();
    assert_eq!(
        (&*ended[0], &*ended[3], &*ended[4]),
        ("leader ends", "webhook ends", "http ends"),
        "{ended:?}"
    );
    assert!(handle.add_runnable(noted("too late", Group::Others, &notes)).is_err());
}

#[tokio::test]
async fn a_reconcile_that_is_under_way_is_finished() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "a").await;
    let notes = Arc::new(Mutex::new(Vec::new()));
    let controller = {
        let notes = notes.clone();
        Controller::of::<ConfigMap>(move |_: ObjectKey, _: Context<ConfigMap>| {
            let notes = notes.clone();
            async move {
                notes.lock().push("begins");
                tokio::time::sleep(Duration::from_millis(300)).await;
                notes.lock().push("ends");
                Ok::<_, Error>(Action::done())
            }
        })
    };
    let running = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
    eventually(SOON, || async { if notes.lock().is_empty() { Err("not begun") } else { Ok(()) } }).await;
    running.stop().await.expect("a graceful end");
    assert_eq!(*notes.lock(), ["begins", "ends"]);
}

#[tokio::test]
async fn stopping_takes_no_longer_than_it_may() {
    let cluster = TestCluster::start().await;
    let stubborn = |_: RunContext| async {
        std::future::pending::<()>().await;
        Ok::<_, Error>(())
    };
    let manager = Manager::new(cluster.client())
        .runnable(Runnable::new("stubborn", stubborn))
        .graceful_shutdown_timeout(Some(Duration::from_millis(300)));
    let running = cluster.run_restricted(manager).await;
    tokio::task::yield_now().await;
    let begun = Instant::now();
    let error = running.stop().await.expect_err("one did not end");
    assert!(begun.elapsed() < stretched(Duration::from_secs(5)));
    assert_eq!(error.to_string(), "not everything stopped within 300ms: stubborn ended by force");
}

#[tokio::test(start_paused = true)]
async fn the_longest_times_mean_never() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let reconciled = Arc::new(AtomicUsize::new(0));
    let count = reconciled.clone();
    let controller = Controller::of::<ConfigMap>(move |_: ObjectKey, _: Context<ConfigMap>| {
        count.fetch_add(1, Ordering::SeqCst);
        async { Ok::<_, Error>(Action::done()) }
    })
    .resync(Duration::MAX)
    .source(Timer::every(Duration::MAX, |_| Ok(vec![ObjectKey::namespaced("default", "timer")])).jitter(0.5))
    .source(Poller::every(Duration::MAX, || async {
        Ok::<BTreeMap<ObjectKey, u32>, Error>(BTreeMap::new())
    }));
    let manager = Manager::new(client).controller(controller).graceful_shutdown_timeout(Some(Duration::MAX));
    let running = cluster.run_restricted(manager).await;
    eventually(SOON, || async {
        if reconciled.load(Ordering::SeqCst) > 1 { Ok(()) } else { Err("not reconciled") }
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_runnable_that_fails_or_panics_ends_the_manager() {
    let cluster = TestCluster::start().await;
    let fails = |_: RunContext| async { Err::<(), _>(BoxError::from("no luck")) };
    let error = run(Manager::new(cluster.client()).runnable(Runnable::new("unlucky", fails)))
        .ended()
        .await
        .expect_err("it failed");
    assert_eq!(error.to_string(), "running unlucky: no luck");
    let panics = |_: RunContext| async { if true { panic!("on purpose") } else { Ok::<_, Error>(()) } };
    let error = run(Manager::new(cluster.client()).runnable(Runnable::new("clumsy", panics)))
        .ended()
        .await
        .expect_err("it failed");
    assert_eq!(error.to_string(), "running clumsy: panicked: on purpose");
}

/// A runnable that could not flush data must not look like a success.
#[tokio::test]
async fn a_runnable_that_fails_or_panics_during_the_stop_is_an_error_of_the_manager() {
    let cluster = TestCluster::start().await;
    let begun = Arc::new(Notify::new());
    let stopped = |panics: bool| {
        let begun = begun.clone();
        Runnable::new("flush", move |cx: RunContext| async move {
            begun.notify_one();
            cx.shutdown().requested().await;
            assert!(!panics, "on purpose");
            Err::<(), _>(BoxError::from("the disk is full"))
        })
    };
    for (panics, expected) in [(false, "the disk is full"), (true, "panicked: on purpose")] {
        let running = run(Manager::new(cluster.client()).runnable(stopped(panics)));
        begun.notified().await;
        let error = running.stop().await.expect_err("the runnable failed");
        assert_eq!(error.to_string(), format!("running flush: {expected}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_does_not_delay_the_stop() {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let map = create_config_map(&cluster.client(), "a").await;
    let (begun, leads) = oneshot::channel();
    let manager = Manager::new(faults.client())
        .leader_election(LeaderElection::new("operator"))
        .controller(Controller::of::<ConfigMap>(idle))
        .runnable(
            Runnable::new("recorder", |cx: RunContext| async move {
                let _ = begun.send(());
                cx.shutdown().requested().await;
                cx.recorder().normal(&map, "Stopping", "it stops");
                Ok::<_, Error>(())
            })
            .group(Group::LeaderElected),
        );
    let running = run_restricted(&cluster, &faults, manager).await;
    leads.await.expect("it leads");
    faults.cut_off();
    let begun = Instant::now();
    running.stop().await.expect("a graceful end");
    assert!(begun.elapsed() < stretched(Duration::from_secs(5)), "{:?}", begun.elapsed());
}

/// Runs the election of another replica, which holds the Lease and renews the Lease.
async fn another_leads(cluster: &TestCluster) -> Running {
    let (begun, leads) = oneshot::channel();
    let leader = Runnable::new("leader", |cx: RunContext| async move {
        let _ = begun.send(());
        cx.shutdown().requested().await;
        Ok::<_, Error>(())
    });
    let manager = Manager::new(cluster.client())
        .leader_election(LeaderElection::new("operator"))
        .runnable(leader.group(Group::LeaderElected));
    let running = run_declared(cluster, manager).await;
    leads.await.expect("it leads");
    running
}

#[tokio::test]
async fn a_warm_up_that_fails_ends_a_standby_replica() {
    let cluster = TestCluster::start().await;
    let leader = another_leads(&cluster).await;
    let faults = Faults::before(cluster.client());
    faults.hold_watches();
    for _ in 0..100 {
        faults.answer(Method::GET, "/configmaps", 403, "Forbidden", None);
    }
    let controller =
        Controller::of::<ConfigMap>(idle).enable_warmup().cache_sync_timeout(Duration::from_millis(300));
    let manager =
        Manager::new(faults.client()).leader_election(LeaderElection::new("operator")).controller(controller);
    let error = run(manager).ended().await.expect_err("the warm-up failed");
    assert!(error.to_string().starts_with("running warm-up of configmap: "), "{error}");
    leader.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_warm_up_is_cancelled_by_the_stop() {
    let cluster = TestCluster::start().await;
    let leader = another_leads(&cluster).await;
    let faults = Faults::before(cluster.client());
    faults.cut_off();
    let manager = Manager::new(faults.client())
        .leader_election(LeaderElection::new("operator"))
        .controller(Controller::of::<ConfigMap>(idle).enable_warmup());
    let running = run_restricted(&cluster, &faults, manager).await;
    eventually(SOON, || async {
        let lists = faults.count(&Method::GET, "/configmaps");
        if lists > 0 { Ok(()) } else { Err("it does not list yet") }
    })
    .await;
    let begun = Instant::now();
    running.stop().await.expect("a graceful end");
    assert!(begun.elapsed() < stretched(Duration::from_secs(5)), "{:?}", begun.elapsed());
    leader.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn two_controllers_of_one_name_are_refused() {
    let cluster = TestCluster::start().await;
    let manager = Manager::new(cluster.client())
        .controller(Controller::of::<ConfigMap>(idle))
        .controller(Controller::of::<ConfigMap>(idle));
    let error = run(manager).ended().await.expect_err("refused");
    assert_eq!(
        error.to_string(),
        "two controllers are called \"configmap\"; give one another name with `.named(..)`"
    );
}

#[tokio::test]
async fn a_controllers_name_must_be_a_label_value() {
    let cluster = TestCluster::start().await;
    for name in ["a b", "", "-a", "a/b", &"a".repeat(64)] {
        let controller = Controller::of::<ConfigMap>(idle).named(name);
        let error =
            run(Manager::new(cluster.client()).controller(controller)).ended().await.expect_err("refused");
        assert!(error.to_string().starts_with(&format!("{name:?} cannot be a controller's name")), "{error}");
    }
}

#[tokio::test]
async fn an_address_in_use_is_an_error_of_the_start() {
    let cluster = TestCluster::start().await;
    let taken = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = taken.local_addr().expect("an address");
    let error =
        run(Manager::new(cluster.client()).metrics_address(address)).ended().await.expect_err("refused");
    assert!(error.to_string().starts_with(&format!("cannot serve metrics on {address}: ")), "{error}");
}

#[tokio::test]
async fn health_and_metrics_are_served() {
    let cluster = TestCluster::start().await;
    let (health, metrics) = (free_address().await, free_address().await);
    let well = Arc::new(Mutex::new(false));
    let check = {
        let well = well.clone();
        move || {
            let well = *well.lock();
            async move { if well { Ok(()) } else { Err("not warm yet") } }
        }
    };
    let (list_ended, listed) = oneshot::channel();
    let manager = Manager::new(cluster.client())
        .controller(Controller::of::<ConfigMap>(idle))
        .health_address(health)
        .metrics_address(metrics)
        .readyz_check("warm", check)
        .runnable(Runnable::new("lister", |cx: RunContext| async move {
            config_maps(cx.client()).list(&ListParams::default()).await?;
            let _ = list_ended.send(());
            Ok::<_, Error>(())
        }));
    let handle = manager.handle();
    let running = cluster.run_restricted(manager).await;
    listed.await.expect("listed");
    eventually(SOON, || async {
        let (code, text) = get(health, "/readyz?exclude=warm").await.map_err(|e| e.to_string())?;
        if code == 200 { Ok(()) } else { Err(text) }
    })
    .await;
    assert_eq!(get(health, "/healthz").await.expect("answers"), (200, "ok".to_owned()));
    assert_eq!(
        get(health, "/readyz").await.expect("answers"),
        (
            500,
            "[+]informer-sync ok\n[+]ping ok\n[+]tasks ok\n[-]warm failed: reason withheld\n[+]watches ok\nreadyz check failed\n"
                .to_owned()
        )
    );
    assert_eq!(get(health, "/readyz?exclude=warm").await.expect("answers").0, 200);
    assert_eq!(get(health, "/readyz/ping").await.expect("answers").0, 200);
    assert_eq!(get(health, "/readyz/nosuch").await.expect("answers").0, 404);
    *well.lock() = true;
    assert_eq!(
        get(health, "/readyz?verbose").await.expect("answers"),
        (
            200,
            "[+]informer-sync ok\n[+]ping ok\n[+]tasks ok\n[+]warm ok\n[+]watches ok\nreadyz check passed\n"
                .to_owned()
        )
    );
    handle.add_readyz_check("late", || async { Err::<(), _>("not yet") });
    handle.add_healthz_check("late", || async { Ok::<(), Error>(()) });
    assert_eq!(get(health, "/readyz").await.expect("answers").0, 500);
    assert_eq!(get(health, "/healthz/late").await.expect("answers").0, 200);
    assert!(handle.remove_readyz_check("late") && handle.remove_healthz_check("late"));
    assert!(!handle.remove_readyz_check("late"), "the check is gone");
    assert_eq!(get(health, "/readyz").await.expect("answers").0, 200);
    assert_eq!(get(health, "/healthz/late").await.expect("answers").0, 404);
    let (code, text) = get(metrics, "/metrics").await.expect("answers");
    assert_eq!(code, 200);
    for name in [
        "controller_runtime_reconcile_total{",
        "controller_runtime_reconcile_errors_total{",
        "controller_runtime_terminal_reconcile_errors_total{",
        "controller_runtime_reconcile_panics_total{",
        "controller_runtime_reconcile_timeouts_total{",
        "controller_runtime_reconcile_time_seconds_bucket{",
        "controller_runtime_max_concurrent_reconciles{",
        "controller_runtime_active_workers{",
        "workqueue_depth{name=\"configmap\",controller=\"configmap\",priority=\"0\"}",
        "workqueue_adds_total{",
        "workqueue_queue_duration_seconds_bucket{",
        "workqueue_work_duration_seconds_count{",
        "workqueue_unfinished_work_seconds{",
        "workqueue_longest_running_processor_seconds{",
        "workqueue_retries_total{",
        "rest_client_requests_total{",
        "rest_client_request_duration_seconds_bucket{",
        "workqueue_work_duration_seconds_bucket{le=\"+Inf\",",
        "windlass_build_info{version=",
        "windlass_cache_objects{resource=\"configmaps\"} ",
        "windlass_cache_bytes{resource=\"configmaps\",part=\"objects\"} ",
        "windlass_cache_unreadable_total{resource=\"configmaps\"} 0",
        "windlass_cache_backlog{resource=\"configmaps\"} 0",
        "windlass_cache_coalesced_total{resource=\"configmaps\"} 0",
        "windlass_watch_lists_total{resource=\"configmaps\"} 1",
        "windlass_watch_failures_total{resource=\"configmaps\"} 0",
        "windlass_events_dropped_total{cause=\"queue_full\"} 0",
        "process_cpu_seconds_total ",
        "process_resident_memory_bytes ",
        "process_virtual_memory_bytes ",
        "process_start_time_seconds ",
        "process_open_fds ",
        "process_max_fds ",
        "# TYPE rest_client_requests_total counter",
    ] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name} is missing in\n{text}");
    }
    assert!(!text.contains("# EOF"), "Prometheus' own format");
    let open_metrics = request(metrics, "/metrics", "application/openmetrics-text;version=1.0.0").await;
    assert!(open_metrics.expect("answers").1.ends_with("# EOF\n"));
    let refused = request(metrics, "/metrics", "application/openmetrics-text;q=0,text/plain").await;
    assert!(!refused.expect("answers").1.contains("# EOF"));
    running.stop().await.expect("a graceful end");
}

pub(crate) async fn free_address() -> std::net::SocketAddr {
    ([127, 0, 0, 1], free_port().await).into()
}

#[tokio::test]
async fn a_manager_is_not_ready_before_its_caches_are_filled() {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    faults.hold_watches();
    for _ in 0..100 {
        faults.answer(Method::GET, "/configmaps", 403, "Forbidden", None);
    }
    let health = free_address().await;
    let manager =
        Manager::new(faults.client()).controller(Controller::of::<ConfigMap>(idle)).health_address(health);
    let running = run_restricted(&cluster, &faults, manager).await;
    eventually(SOON, || async { get(health, "/healthz").await.map(drop) }).await;
    let (code, text) = get(health, "/readyz").await.expect("answers");
    assert_eq!(code, 500);
    assert!(text.contains("[-]informer-sync failed"), "{text}");
    running.stop().await.expect("a graceful end");
}

/// The rights to a kind are taken away while the manager runs.
#[tokio::test]
async fn a_manager_whose_watch_fails_for_long_is_not_ready_until_the_watch_works() {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let health = free_address().await;
    let manager = Manager::new(faults.client())
        .controller(Controller::of::<ConfigMap>(idle))
        .stale_watches_fail_readiness_after(Some(Duration::from_millis(100)))
        .health_address(health);
    let metrics = manager.metrics().clone();
    let running = run(manager);
    let ready = |wanted: u16| async move {
        let (code, text) = get(health, "/readyz").await.map_err(|error| error.to_string())?;
        if code == wanted { Ok(text) } else { Err(text) }
    };
    eventually(SOON, || ready(200)).await;
    assert!(metrics.render().contains("windlass_watch_failing_seconds{resource=\"configmaps\"} 0"));
    faults.forbid_reads();
    let text = eventually(SOON, || ready(500)).await;
    assert!(text.contains("[-]watches failed") && text.contains("[+]informer-sync ok"), "{text}");
    assert_eq!(get(health, "/readyz?exclude=watches").await.expect("answers").0, 200);
    faults.allow_reads();
    // The next event or bookmark of an idle watch proves that the watch works.
    create_config_map(&cluster.client(), "a").await;
    eventually(SOON, || ready(200)).await;
    running.stop().await.expect("a graceful end");
}

/// The check `informer-sync` succeeds once all caches were filled: a watch that is added later and never works is found by `watches`.
#[tokio::test]
async fn a_manager_is_not_ready_while_a_later_watch_fails() {
    let cluster = TestCluster::start().await;
    let faults = Faults::before(cluster.client());
    let health = free_address().await;
    let manager = Manager::new(faults.client())
        .controller(Controller::of::<ConfigMap>(idle))
        .stale_watches_fail_readiness_after(Some(Duration::from_millis(100)))
        .health_address(health);
    let handle = manager.handle();
    let running = run(manager);
    let ready = |wanted: u16| async move {
        let (code, text) = get(health, "/readyz").await.map_err(|error| error.to_string())?;
        if code == wanted { Ok(text) } else { Err(text) }
    };
    eventually(SOON, || ready(200)).await;
    faults.fail("/secrets");
    let reconcile = |_: ObjectKey, _: Context<Secret>| async { Ok::<_, Error>(Action::done()) };
    handle.add_controller(Controller::of::<Secret>(reconcile)).await.expect("added");
    let text = eventually(SOON, || ready(500)).await;
    assert!(text.contains("[-]watches failed") && text.contains("[+]informer-sync ok"), "{text}");
    faults.heal();
    eventually(SOON, || ready(200)).await;
    running.stop().await.expect("a graceful end");
}

/// Sends a GET request and returns the status code and the body.
pub(crate) async fn get(address: std::net::SocketAddr, path: &str) -> Result<(u16, String), std::io::Error> {
    request(address, path, "*/*").await
}

async fn request(
    address: std::net::SocketAddr,
    path: &str,
    accept: &str,
) -> Result<(u16, String), std::io::Error> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\naccept: {accept}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default();
    Ok((code, body))
}

/// A worker that was restarted after a panic, and has no more keys, counts as working: readiness does not
/// wait for the next key.
#[tokio::test]
async fn a_restarted_worker_without_keys_is_ready() {
    let cluster = TestCluster::start().await;
    let limited = AtomicUsize::new(0);
    let limiter = RateLimiter::from_fn(move |_| {
        assert!(limited.fetch_add(1, Ordering::SeqCst) > 0, "the first time panics");
        Duration::from_millis(1)
    });
    let reconciled = Arc::new(AtomicUsize::new(0));
    let controller = {
        let reconciled = reconciled.clone();
        Controller::keyed::<()>("fragile", move |_: String, _: Context<()>| {
            let first = reconciled.fetch_add(1, Ordering::SeqCst) == 0;
            async move { if first { Err(Error::other("not yet")) } else { Ok(Action::done()) } }
        })
        .rate_limiter(limiter)
        .max_concurrent_reconciles(2)
    };
    controller.handle().enqueue("a".to_owned());
    let health = free_address().await;
    let running = cluster
        .run_restricted(Manager::new(cluster.client()).controller(controller).health_address(health))
        .await;
    eventually(SOON, || async {
        let reconciles = reconciled.load(Ordering::SeqCst);
        if reconciles == 2 { Ok(()) } else { Err(format!("{reconciles} reconciles")) }
    })
    .await;
    eventually(SOON, || async {
        let (code, text) = get(health, "/readyz").await.map_err(|e| e.to_string())?;
        if code == 200 { Ok(()) } else { Err(text) }
    })
    .await;
    running.stop().await.expect("a graceful end");
}
