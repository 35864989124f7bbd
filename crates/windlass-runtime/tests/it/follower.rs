//! Replicas that become followers when they lose the Lease, in paused time.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::Method;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube_client::{Client, api::DeleteParams};
use parking_lot::Mutex;
use tokio::sync::Notify;
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey, RunContext, Runnable,
    leader_election::LeaderElection, manager::Group, owner::Owned, storage_migration::StorageMigration,
};
use windlass_test::{TestCluster, eventually};

use crate::{
    fault::Faults,
    fixture::{Running, SOON, create_config_map, expect_eq, metric, run, run_restricted, secret, secrets},
};

/// The occurrences of a test, in order.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    fn add(&self, note: impl Into<String>) {
        self.0.lock().push(note.into());
    }

    fn count(&self, wanted: &str) -> usize {
        self.0.lock().iter().filter(|note| *note == wanted).count()
    }

    async fn wait(&self, wanted: &str, times: usize) {
        let check = || match self.count(wanted) {
            count if count >= times => Ok(()),
            count => Err(format!("{wanted:?} {count} times, not {times}: {:?}", self.0.lock())),
        };
        eventually(SOON, || async { check() }).await;
    }
}

/// A controller that writes down the keys that it reconciles.
fn noting(replica: &'static str, notes: &Notes) -> Controller {
    let notes = notes.clone();
    Controller::of::<ConfigMap>(move |key: ObjectKey, _: Context<ConfigMap>| {
        notes.add(format!("{replica} reconciles {}", key.name()));
        async { Ok::<_, Infallible>(Action::done()) }
    })
}

fn election(replica: &str) -> LeaderElection {
    LeaderElection::new("operator").identity(replica).back_to_follower()
}

fn replica(client: Client, name: &'static str, notes: &Notes) -> Manager {
    Manager::new(client).controller(noting(name, notes)).leader_election(election(name))
}

/// A runnable that writes down when it begins and when it is told to end.
fn runnable(name: &'static str, group: Group, notes: &Notes) -> Runnable {
    let notes = notes.clone();
    let run = move |cx: RunContext| {
        let notes = notes.clone();
        async move {
            notes.add(format!("{name} begins"));
            cx.shutdown().requested().await;
            notes.add(format!("{name} ends"));
            Ok::<_, Error>(())
        }
    };
    Runnable::repeatable(name, run).group(group)
}

/// Lets a leader lose the Lease, and waits until it has.
async fn lose_lease(faults: &Faults, metrics: &windlass_runtime::Metrics) {
    faults.fail("/leases");
    leads(metrics, 0).await;
}

async fn leads(metrics: &windlass_runtime::Metrics, wanted: u64) {
    let value = || metric(&metrics.render(), "leader_election_master_status{name=\"operator\"}");
    eventually(SOON, || async { expect_eq(value(), wanted) }).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_is_lost_during_the_stop_ends_the_parts_of_the_leader() {
    let cluster = TestCluster::start().await;
    let (faults, notes) = (Faults::before(cluster.client()), Notes::default());
    let began = notes.clone();
    let deaf = Runnable::new("deaf", move |_: RunContext| {
        began.add("deaf begins");
        let ended = NoteOnDrop(began.clone());
        async move {
            let _ended = ended;
            std::future::pending::<Result<(), Error>>().await
        }
    });
    let election = LeaderElection::new("operator").identity("a");
    let manager = Manager::new(faults.client())
        .runnable(deaf.group(Group::LeaderElected))
        .leader_election(election)
        .graceful_shutdown_timeout(Some(Duration::from_hours(1)));
    let running = run(manager);
    notes.wait("deaf begins", 1).await;
    faults.fail("/leases");
    let began = tokio::time::Instant::now();
    let stopping = tokio::spawn(running.stop());
    notes.wait("deaf ends", 1).await;
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "another replica may lead after the Lease: {:?}",
        began.elapsed()
    );
    assert!(stopping.await.expect("the stop ends").is_err());
}

/// Writes down the end of a future.
struct NoteOnDrop(Notes);

impl Drop for NoteOnDrop {
    fn drop(&mut self) {
        self.0.add("deaf ends");
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_loses_the_lease_follows_and_leads_again() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "first").await;
    let (faults, notes) = (Faults::before(cluster.client()), Notes::default());
    let manager = replica(faults.client(), "a", &notes)
        .runnable(runnable("of the leader", Group::LeaderElected, &notes))
        .runnable(runnable("of every replica", Group::Others, &notes))
        .runnable(runnable("webhooks", Group::Webhooks, &notes));
    let (metrics, handle) = (manager.metrics().clone(), manager.handle());
    let running = run_restricted(&cluster, &faults, manager).await;
    notes.wait("a reconciles first", 1).await;
    notes.wait("of the leader begins", 1).await;

    lose_lease(&faults, &metrics).await;
    create_config_map(&cluster.client(), "second").await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(notes.count("a reconciles second"), 0, "a follower reconciles nothing");
    handle.add_runnable(runnable("later", Group::LeaderElected, &notes)).expect("it runs");

    faults.heal();
    notes.wait("a reconciles first", 2).await;
    notes.wait("a reconciles second", 1).await;
    notes.wait("of the leader begins", 2).await;
    notes.wait("later begins", 1).await;
    leads(&metrics, 1).await;
    for part in ["of every replica", "webhooks"] {
        assert_eq!(notes.count(&format!("{part} begins")), 1, "{part} went on");
        assert_eq!(notes.count(&format!("{part} ends")), 0, "{part} went on");
    }
    let lists = "windlass_watch_lists_total{resource=\"configmaps\"}";
    assert_eq!(metric(&metrics.render(), lists), 1, "the cache stayed up");

    lose_lease(&faults, &metrics).await;
    faults.heal();
    notes.wait("a reconciles second", 2).await;
    notes.wait("later begins", 2).await;
    running.stop().await.expect("a graceful end");
    assert_eq!(notes.count("of the leader ends"), 1, "a lost Lease gives no time to end");
}

#[tokio::test(start_paused = true)]
async fn a_follower_takes_over_from_the_leader_that_took_over_from_it() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "first").await;
    let (faults, notes) = (Faults::before(cluster.client()), Notes::default());
    let a = replica(faults.client(), "a", &notes);
    let metrics = a.metrics().clone();
    let a = run(a);
    notes.wait("a reconciles first", 1).await;
    let b = run(replica(cluster.client(), "b", &notes));
    lose_lease(&faults, &metrics).await;
    notes.wait("b reconciles first", 1).await;
    faults.heal();
    create_config_map(&cluster.client(), "second").await;
    notes.wait("b reconciles second", 1).await;
    assert_eq!(notes.count("a reconciles second"), 0);
    b.stop().await.expect("a graceful end");
    notes.wait("a reconciles first", 2).await;
    notes.wait("a reconciles second", 1).await;
    a.stop().await.expect("a graceful end");
}

/// The event of an own write arrives after the term of the write, and another client has deleted the object by then.
#[tokio::test(start_paused = true)]
async fn an_own_write_of_an_earlier_term_hides_nothing() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "first").await;
    let (faults, notes) = (Faults::before(cluster.client()), Notes::default());
    let controller = {
        let (faults, notes) = (faults.clone(), notes.clone());
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let (faults, notes) = (faults.clone(), notes.clone());
            async move {
                let Some(map) = cx.get(&key)?.filter(|_| key.name() == "first") else {
                    return Ok(Action::done());
                };
                if cx.owned_by::<Secret>(&map)?.is_empty() {
                    if notes.count("created") == 0 {
                        faults.hold_watches();
                    }
                    cx.create(secret("s").controlled_by(&*map)?).await?;
                    notes.add("created");
                }
                Ok::<_, Error>(Action::done())
            }
        })
    };
    let controller = controller.owns::<Secret>().skip_own_writes();
    let manager = Manager::new(faults.client()).controller(controller).leader_election(election("a"));
    let metrics = manager.metrics().clone();
    let running = run(manager);
    notes.wait("created", 1).await;
    lose_lease(&faults, &metrics).await;
    secrets(&cluster.client()).delete("s", &DeleteParams::default()).await.expect("deleted");
    faults.release_watches();
    faults.heal();
    notes.wait("created", 2).await;
    running.stop().await.expect("a graceful end");
}

/// The only object of the key is a Secret that the reconcile of the key created.
#[tokio::test(start_paused = true)]
async fn a_key_with_an_own_write_is_reconciled_in_the_next_term() {
    const SKIPPED: &str = "windlass_controller_own_writes_skipped_total{controller=\"configmap\"}";
    let cluster = TestCluster::start().await;
    let (faults, notes) = (Faults::before(cluster.client()), Notes::default());
    let key = ObjectKey::namespaced("default", "virtual");
    let controller = {
        let notes = notes.clone();
        Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let notes = notes.clone();
            async move {
                if key.name() != "virtual" {
                    return Ok(Action::done());
                }
                if cx.lister::<Secret>()?.get(&ObjectKey::namespaced("default", "s"))?.is_none() {
                    cx.create(secret("s")).await?;
                }
                notes.add("reconciled");
                Ok::<_, Error>(Action::done())
            }
        })
    };
    let mapped = key.clone();
    let controller = controller.watches::<Secret>(move |_, _| Ok(vec![mapped.clone()])).skip_own_writes();
    controller.handle().enqueue(key);
    let manager = Manager::new(faults.client()).controller(controller).leader_election(election("a"));
    let metrics = manager.metrics().clone();
    let running = run(manager);
    notes.wait("reconciled", 1).await;
    eventually(SOON, || async { expect_eq(metric(&metrics.render(), SKIPPED), 1) }).await;
    lose_lease(&faults, &metrics).await;
    faults.heal();
    notes.wait("reconciled", 2).await;
    running.stop().await.expect("a graceful end");
}

/// Only the source knows the key.
#[tokio::test(start_paused = true)]
async fn a_reconcile_under_way_is_dropped_and_repeated_in_the_next_term() {
    let cluster = TestCluster::start().await;
    let (faults, begun) = (Faults::before(cluster.client()), Arc::new(AtomicUsize::new(0)));
    let controller = {
        let begun = begun.clone();
        Controller::keyed::<()>("keyed", move |_: String, _: Context<()>| {
            let first = begun.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                if first {
                    std::future::pending::<()>().await;
                }
                Ok::<_, Infallible>(Action::done())
            }
        })
    };
    controller.handle().enqueue("order".to_owned());
    let manager = Manager::new(faults.client()).controller(controller).leader_election(election("a"));
    let metrics = manager.metrics().clone();
    let running = run(manager);
    let reconciles = |wanted| {
        let begun = &begun;
        eventually(SOON, move || async move { expect_eq(begun.load(Ordering::SeqCst), wanted) })
    };
    reconciles(1).await;
    lose_lease(&faults, &metrics).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    reconciles(1).await;
    faults.heal();
    reconciles(2).await;
    running.stop().await.expect("a graceful end");
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_warms_up_is_stopped_on_a_follower() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "first").await;
    let (faults, notes) = (Faults::before(cluster.client()), Notes::default());
    let manager = Manager::new(faults.client())
        .controller(noting("a", &notes).enable_warmup())
        .leader_election(election("a"));
    let (metrics, handle) = (manager.metrics().clone(), manager.handle());
    let running = run(manager);
    notes.wait("a reconciles first", 1).await;
    lose_lease(&faults, &metrics).await;
    handle.stop("configmap").await.expect("stopped");
    let error = handle.stop("configmap").await.expect_err("it has ended");
    assert_eq!(error.to_string(), "the manager has no part called \"configmap\"");
    let unused = || match metric(&metrics.render(), "windlass_cache_backlog{resource=\"configmaps\"}") {
        0 if faults.count(&Method::GET, "/configmaps") > 0 => Ok(()),
        backlog => Err(backlog.to_string()),
    };
    eventually(SOON, || async { unused() }).await;
    handle.add_controller(noting("new", &notes).enable_warmup()).await.expect("the name is free");
    faults.heal();
    notes.wait("new reconciles first", 1).await;
    assert_eq!(notes.count("a reconciles first"), 1);
    running.stop().await.expect("a graceful end");
}

/// Code that blocks its thread cannot be aborted: two replicas could work at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_whose_code_blocks_its_thread_ends() {
    let cluster = TestCluster::start().await;
    create_config_map(&cluster.client(), "first").await;
    let (faults, begun) = (Faults::before(cluster.client()), Arc::new(Notify::new()));
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let controller = {
        let begun = begun.clone();
        Controller::of::<ConfigMap>(move |_: ObjectKey, _: Context<ConfigMap>| {
            let (begun, released) = (begun.clone(), released.clone());
            async move {
                begun.notify_one();
                let _ = released.lock().recv_timeout(Duration::from_mins(1));
                Ok::<_, Infallible>(Action::done())
            }
        })
    };
    let timing = windlass_runtime::leader_election::Timing {
        lease_duration: Duration::from_secs(2),
        renew_deadline: Duration::from_secs(1),
        retry_period: Duration::from_millis(200),
    };
    let manager =
        Manager::new(faults.client()).controller(controller).leader_election(election("a").timing(timing));
    let running: Running = run(manager);
    begun.notified().await;
    faults.fail("/leases");
    let error = running.ended().await.expect_err("it lost the lease");
    assert!(error.is_lost_leadership(), "{error}");
    drop(release);
}

#[tokio::test(start_paused = true)]
async fn a_runnable_of_the_leader_that_cannot_start_again_is_refused() {
    let cluster = TestCluster::start().await;
    let once =
        || Runnable::new("report", |_: RunContext| async { Ok::<_, Error>(()) }).group(Group::LeaderElected);
    let manager = Manager::new(cluster.client()).runnable(once()).leader_election(election("a"));
    let error = run(manager).ended().await.expect_err("refused");
    assert_eq!(
        error.to_string(),
        "the leader runs \"report\", which cannot start again when this replica is elected again; make it with \
         `Runnable::repeatable`, or do not call `LeaderElection::back_to_follower`"
    );

    // The runnable of Windlass itself can start again.
    let migration = StorageMigration::of("bars.example.com").runnable();
    let manager = Manager::new(cluster.client()).runnable(migration).leader_election(election("a"));
    let metrics = manager.metrics().clone();
    let running = run(manager);
    leads(&metrics, 1).await;
    running.stop().await.expect("a graceful stop");

    // If it is added later, the manager ends when the replica loses the Lease.
    let (faults, notes) = (Faults::before(cluster.client()), Notes::default());
    create_config_map(&cluster.client(), "first").await;
    let manager = replica(faults.client(), "a", &notes);
    let handle = manager.handle();
    let running = run(manager);
    notes.wait("a reconciles first", 1).await;
    handle.add_runnable(once()).expect("it runs");
    faults.fail("/leases");
    let error = running.ended().await.expect_err("it lost the lease");
    assert!(error.is_lost_leadership(), "{error}");
}
