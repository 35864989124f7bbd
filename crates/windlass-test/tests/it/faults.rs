//! Faults that are scripted.

use std::time::Duration;

use futures::TryStreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Client;
use kube_client::api::{Api, ListParams, PostParams, VersionMatch, WatchEvent, WatchParams};
use kube_core::ObjectMeta;
use tokio::time::{Instant, timeout};
use windlass_runtime::leader_election::LeaderElection;
use windlass_runtime::permission::Verb;
use windlass_runtime::{Error, Manager};
use windlass_test::{Fault, Faults, TestClock, TestCluster};

fn configs(client: Client) -> Api<ConfigMap> {
    Api::default_namespaced(client)
}

fn config(name: &str) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    }
}

async fn create(client: Client, name: &str) -> Result<(), Error> {
    configs(client).create(&PostParams::default(), &config(name)).await.map(drop).map_err(Error::from)
}

/// Creates a ConfigMap with a fault. Returns the error, and whether the ConfigMap was created.
async fn create_with(fault: Fault) -> (Error, bool) {
    let cluster = TestCluster::start().await;
    let faults = Faults::new(cluster.client());
    faults.inject(fault.on(Verb::Create).to("configmaps"));
    let error = create(faults.client(), "a").await.expect_err("a fault");
    faults.assert_all_struck();
    let created = configs(cluster.client()).get_opt("a").await.expect("read").is_some();
    create(faults.client(), "b").await.expect("the fault strikes once");
    (error, created)
}

#[tokio::test(start_paused = true)]
async fn a_write_fails_before_or_after_its_commit() {
    let (error, created) = create_with(Fault::Conflict).await;
    assert!(error.is_conflict() && !created, "{error}");
    let (error, created) = create_with(Fault::TooManyRequests(Duration::from_secs(3))).await;
    assert!(error.is_too_many_requests() && !created, "{error}");
    let (error, created) = create_with(Fault::ServerError).await;
    assert!(error.is_transient() && !created, "{error}");
    let (error, created) = create_with(Fault::Forbidden).await;
    assert!(error.is_forbidden() && !created, "{error}");
    let (error, created) = create_with(Fault::NotFound).await;
    assert!(error.is_not_found() && !created, "{error}");
    for committed in [false, true] {
        let began = Instant::now();
        let (error, created) = create_with(Fault::Timeout { committed }).await;
        assert!(error.is_timeout() && created == committed, "{error}");
        assert!(began.elapsed() >= Duration::from_secs(34));
        let (error, created) = create_with(Fault::Cut { committed }).await;
        assert!(error.is_transient() && created == committed, "{error}");
    }
}

#[tokio::test]
async fn rules_strike_the_requests_that_they_name() {
    let cluster = TestCluster::start().await;
    let faults = Faults::new(cluster.client());
    faults.inject(Fault::ServerError.on(Verb::Create).to("configmaps").skip(1).times(2));
    let mut failed = Vec::new();
    for name in ["a", "b", "c", "d"] {
        if create(faults.client(), name).await.is_err() {
            failed.push(name);
        }
    }
    assert_eq!(failed, ["b", "c"]);
    faults.inject(Fault::NotFound.on(Verb::Get).named("b"));
    assert!(configs(faults.client()).get("a").await.is_ok());
    assert!(configs(faults.client()).get("b").await.is_err());
    assert_eq!(faults.injected().len(), 3);
    assert_eq!(faults.trace().len(), 6);
}

#[tokio::test]
#[should_panic(expected = "these faults did not strike: conflict on patch pods/status")]
async fn a_fault_that_does_not_strike_fails_the_test() {
    let cluster = TestCluster::start().await;
    let faults = Faults::new(cluster.client());
    faults.inject(Fault::Conflict.on(Verb::Patch).to("pods/status"));
    faults.assert_all_struck();
}

/// Watches with a fault while four objects are created. Returns the number of events within a second, and the
/// end of the watch.
async fn watch_with(fault: Fault) -> (usize, Option<Result<(), String>>) {
    let cluster = TestCluster::start().await;
    let faults = Faults::new(cluster.client());
    let listed = configs(cluster.client()).list(&ListParams::default()).await.expect("listed");
    let version = listed.metadata.resource_version.unwrap_or_default();
    faults.inject(fault.on(Verb::Watch).to("configmaps"));
    let watch = configs(faults.client());
    let events = match watch.watch(&WatchParams::default().timeout(100), &version).await {
        Ok(events) => events,
        Err(error) => return (0, Some(Err(error.to_string()))),
    };
    for name in ["a", "b", "c", "d"] {
        create(cluster.client(), name).await.expect("created");
    }
    let mut events = std::pin::pin!(events);
    let mut arrived = 0;
    loop {
        match timeout(Duration::from_secs(1), events.try_next()).await {
            Err(_) => return (arrived, None),
            Ok(Ok(None)) => return (arrived, Some(Ok(()))),
            Ok(Ok(Some(WatchEvent::Error(status)))) => return (arrived, Some(Err(status.message.clone()))),
            Ok(Ok(Some(_))) => arrived += 1,
            Ok(Err(error)) => return (arrived, Some(Err(error.to_string()))),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_breaks_expires_or_lags() {
    assert_eq!(watch_with(Fault::WatchDrop { after: 2 }).await, (2, Some(Ok(()))));
    let (arrived, end) = watch_with(Fault::WatchCut { after: 1 }).await;
    assert!(arrived == 1 && matches!(end, Some(Err(_))), "{arrived} {end:?}");
    let (arrived, end) = watch_with(Fault::Expired).await;
    assert!(arrived == 0 && matches!(end, Some(Err(_))), "{arrived} {end:?}");
    assert_eq!(watch_with(Fault::Stale { events: 3 }).await, (1, None));
}

#[tokio::test(start_paused = true)]
async fn watches_are_held_and_released() {
    let cluster = TestCluster::start().await;
    let faults = Faults::new(cluster.client());
    faults.hold_watches();
    let watch = configs(faults.client());
    let events = watch.watch(&WatchParams::default().timeout(100), "").await.expect("a watch");
    let mut events = std::pin::pin!(events);
    create(cluster.client(), "a").await.expect("created");
    assert!(timeout(Duration::from_secs(40), events.try_next()).await.is_err());
    faults.release_watches();
    assert!(events.try_next().await.expect("an event").is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_replica_takes_is_lost() {
    let cluster = TestCluster::start().await;
    let faults = Faults::new(cluster.client());
    faults.inject(Fault::LeaseTaken.on(Verb::Update).to("leases").skip(2));
    let manager = Manager::new(faults.client()).leader_election(LeaderElection::new("web"));
    let error = cluster.run(manager).ended().await.expect_err("the lease is lost");
    assert!(error.is_lost_leadership(), "{error}");
    faults.assert_all_struck();
    let leases: Api<Lease> = Api::default_namespaced(cluster.client());
    let holder = leases.get("web").await.expect("the lease").spec.and_then(|spec| spec.holder_identity);
    assert_eq!(holder.as_deref(), Some("another-replica"));
}

#[tokio::test(start_paused = true)]
async fn a_crash_ends_the_client_and_the_next_process_gets_another() {
    let cluster = TestCluster::start().await;
    let faults = Faults::new(cluster.client());
    faults.inject(Fault::Crash { committed: true }.on_writes().to("configmaps"));
    let before = faults.client();
    let crashed = tokio::select! {
        biased;
        () = faults.crashed() => true,
        _ = create(before.clone(), "a") => false,
    };
    assert!(crashed);
    let hangs = timeout(Duration::from_secs(600), create(before, "b")).await;
    assert!(hangs.is_err(), "a process that ended gets no answer");
    assert!(configs(faults.client()).get("a").await.is_ok(), "it was created before the crash");
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ended_gets_no_further_events() {
    let cluster = TestCluster::start().await;
    let faults = Faults::new(cluster.client());
    let watch = configs(faults.client());
    let events = watch.watch(&WatchParams::default().timeout(100), "").await.expect("a watch");
    let mut events = std::pin::pin!(events);
    create(cluster.client(), "a").await.expect("created");
    assert!(events.try_next().await.expect("an event").is_some());
    faults.inject(Fault::Crash { committed: true }.on_writes().to("configmaps"));
    let crash = tokio::spawn(create(faults.client(), "b"));
    faults.crashed().await;
    create(cluster.client(), "c").await.expect("created");
    assert!(timeout(Duration::from_secs(600), events.try_next()).await.is_err());
    crash.abort();
}

/// The operator's process may end before the test waits for the end.
#[tokio::test(start_paused = true)]
async fn a_crash_that_has_happened_ends_the_wait() {
    let cluster = TestCluster::start().await;
    let faults = Faults::new(cluster.client());
    faults.inject(Fault::Crash { committed: true }.on_writes().to("configmaps"));
    let hangs = timeout(Duration::from_secs(600), create(faults.client(), "a")).await;
    assert!(hangs.is_err(), "the process has ended");
    timeout(Duration::from_secs(600), faults.crashed()).await.expect("the crash is known");
    let _next = faults.client();
    let waits = timeout(Duration::from_secs(600), faults.crashed()).await;
    assert!(waits.is_err(), "the next process has not crashed");
}

#[tokio::test(start_paused = true)]
async fn faults_can_be_injected_after_the_end_of_all_faults() {
    let cluster = TestCluster::start().await;
    let faults = Faults::new(cluster.client());
    faults.inject(Fault::Conflict.on(Verb::Create).to("configmaps"));
    create(faults.client(), "a").await.expect_err("a fault");
    let lagging = Fault::Stale { events: 3 }.on(Verb::Watch).to("configmaps");
    faults.inject(lagging.clone());
    let watch = configs(faults.client());
    let earlier = watch.watch(&WatchParams::default().timeout(290), "0").await.expect("a watch");
    let mut earlier = std::pin::pin!(earlier);
    faults.clear_faults();
    faults.assert_all_struck();
    create(faults.client(), "a").await.expect("no fault");

    faults.inject(Fault::Conflict.on(Verb::Create).to("configmaps"));
    faults.inject(lagging);
    create(faults.client(), "b").await.expect_err("a fault");
    let watch = configs(faults.client());
    let later = watch.watch(&WatchParams::default().timeout(290), "0").await.expect("a watch");
    let mut later = std::pin::pin!(later);
    faults.assert_all_struck();
    let second = Duration::from_secs(1);
    create(faults.client(), "c").await.expect("no fault");
    let mut names = Vec::new();
    while let Ok(event) = timeout(second, earlier.try_next()).await {
        match event.expect("an event") {
            Some(WatchEvent::Added(config)) => names.extend(config.metadata.name),
            Some(WatchEvent::Bookmark(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(names, ["a", "c"], "no fault strikes the earlier watch again");
    assert!(timeout(second, later.try_next()).await.is_err(), "the later watch lags");
}

#[tokio::test]
#[should_panic(expected = "these faults did not strike: conflict on patch pods/status")]
async fn a_fault_that_did_not_strike_before_the_end_of_all_faults_fails_the_test() {
    let cluster = TestCluster::start().await;
    let faults = Faults::new(cluster.client());
    faults.inject(Fault::Conflict.on(Verb::Patch).to("pods/status"));
    faults.clear_faults();
    faults.assert_all_struck();
}

/// A rule that matches requests without an effect proves no behaviour.
#[tokio::test(start_paused = true)]
async fn a_fault_strikes_only_requests_that_the_fault_affects() {
    let cluster = TestCluster::start().await;
    let unaffected = [
        Fault::WatchDrop { after: 0 }.on_any(),
        Fault::WatchCut { after: 0 }.on_any(),
        Fault::Stale { events: 1 }.on_any(),
        Fault::LeaseTaken.on_any(),
        Fault::Expired.on_any(),
        Fault::Conflict.on(Verb::Delete).always(),
    ];
    for rule in unaffected {
        let faults = Faults::new(cluster.client());
        let name = rule.to_string();
        faults.inject(rule);
        configs(faults.client()).list(&ListParams::default()).await.expect("listed");
        let struck = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| faults.assert_all_struck()));
        assert!(struck.is_err(), "{name}: {:?}", faults.injected());
    }
    let faults = Faults::new(cluster.client());
    faults.inject(Fault::Stale { events: 1 }.on(Verb::List));
    let names = async || {
        let listed = configs(faults.client()).list(&ListParams::default()).await.expect("listed");
        listed.items.into_iter().filter_map(|config| config.metadata.name).collect::<Vec<_>>()
    };
    let before = names().await;
    create(cluster.client(), "new").await.expect("created");
    assert_eq!(names().await, before);
    assert_ne!(names().await, before);
    faults.assert_all_struck();

    faults.inject(Fault::Expired.on(Verb::List).times(2));
    let listed = configs(faults.client()).list(&ListParams::default()).await.expect("listed");
    let version = listed.metadata.resource_version.unwrap_or_default();
    let at_version = ListParams::default().at(&version).matching(VersionMatch::Exact);
    for expired in [at_version, ListParams::default().continue_token("further")] {
        let error = configs(faults.client()).list(&expired).await.expect_err("a fault");
        let error = Error::from(error);
        assert!(error.is_gone(), "{error}");
    }
    faults.assert_all_struck();
}

#[tokio::test(start_paused = true)]
async fn a_clock_follows_paused_time_and_jumps() {
    let clock = TestClock::starting_at(Timestamp::UNIX_EPOCH);
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert_eq!(clock.now().as_second(), 100);
    clock.jump(SignedDuration::from_secs(-40));
    assert_eq!(clock.env(1).now().as_second(), 60);
}

#[tokio::test(start_paused = true)]
async fn a_fault_moves_the_clock_of_the_operator() {
    let cluster = TestCluster::start().await;
    let clock = TestClock::starting_at(Timestamp::UNIX_EPOCH);
    let faults = Faults::new(cluster.client()).clock(clock.clone());
    faults.inject(Fault::ClockJump(SignedDuration::from_hours(1)).on(Verb::Create).to("configmaps"));
    create(faults.client(), "a").await.expect("the request is carried out");
    faults.assert_all_struck();
    assert_eq!(clock.now().as_second(), 3600);
}

#[tokio::test]
#[should_panic(expected = "clock jump of 60 s on create: there is no clock that could jump")]
async fn a_jump_of_the_clock_needs_a_clock() {
    let cluster = TestCluster::start().await;
    Faults::new(cluster.client()).inject(Fault::ClockJump(SignedDuration::from_secs(60)).on(Verb::Create));
}
