//! Sources of keys other than watches.

use std::{
    collections::BTreeMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::core::v1::ConfigMap;
use parking_lot::Mutex;
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey,
    source::{EventStream, Poller, Timer},
};
use windlass_test::{TestCluster, eventually};

use crate::fixture::{SOON, create_config_map, expect_eq, metric};

/// The keys that a controller reconciled.
#[derive(Clone, Default)]
struct Reconciled(Arc<Mutex<Vec<String>>>);

impl Reconciled {
    fn controller(&self) -> Controller<String> {
        let this = self.clone();
        Controller::keyed::<()>("fed", move |key: String, _: Context<()>| {
            this.0.lock().push(key);
            async { Ok::<_, Error>(Action::done()) }
        })
    }

    async fn eventually(&self, wanted: &[&str]) {
        eventually(SOON, || async {
            expect_eq(self.sorted(), wanted.iter().map(ToString::to_string).collect())
        })
        .await;
    }

    fn sorted(&self) -> Vec<String> {
        let mut keys = self.0.lock().clone();
        keys.sort();
        keys
    }
}

#[tokio::test]
async fn events_are_mapped_to_keys_and_one_that_fails_is_mapped_again() {
    let cluster = TestCluster::start().await;
    let reconciled = Reconciled::default();
    let failures = Arc::new(AtomicUsize::new(0));
    let (sender, events) =
        EventStream::channel(move |event: &u32, _| match (event, failures.load(Ordering::SeqCst)) {
            (3, 0) => {
                failures.fetch_add(1, Ordering::SeqCst);
                Err(Error::other("not yet"))
            }
            (3, 1) => {
                failures.fetch_add(1, Ordering::SeqCst);
                panic!("not yet either")
            }
            _ => Ok(vec![format!("{event}"), format!("{event} again")]),
        });
    let manager = Manager::new(cluster.client())
        .controller(reconciled.controller().source(events.predicate(|event| *event != 2)));
    let metrics = manager.metrics().clone();
    let running = cluster.run_restricted(manager).await;
    for event in 1..=4 {
        sender.send(event).await.expect("the controller runs");
    }
    reconciled.eventually(&["1", "1 again", "3", "3 again", "4", "4 again"]).await;
    assert_eq!(metric(&metrics.render(), "windlass_task_panics_total{task=\"event mapper\"}"), 1);
    running.stop().await.expect("a graceful end");
    let error = sender.send(5).await.expect_err("the controller has ended");
    assert!(error.is_stopped(), "{error}");
}

/// Unmappable events, more than the limit of waiting events, do not block later events.
#[tokio::test(start_paused = true)]
async fn events_that_cannot_be_mapped_are_given_up() {
    let cluster = TestCluster::start().await;
    let reconciled = Reconciled::default();
    let (sender, events) = EventStream::channel(|tenant: &u32, _| match tenant {
        0 => Err(Error::other("no such tenant")),
        tenant => Ok(vec![tenant.to_string()]),
    });
    let manager = Manager::new(cluster.client()).controller(reconciled.controller().source(events));
    let metrics = manager.metrics().clone();
    let running = cluster.run_restricted(manager).await;
    for _ in 0..1030 {
        sender.send(0).await.expect("the controller runs");
    }
    sender.send(7).await.expect("the controller runs");
    reconciled.eventually(&["7"]).await;
    let given_up = || metric(&metrics.render(), "windlass_unmapped_events_total{controller=\"fed\"}");
    eventually(Duration::from_mins(10), || async { expect_eq(given_up(), 1030) }).await;
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_timer_enqueues_what_the_cache_holds() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    create_config_map(&client, "a").await;
    let seen = Arc::new(AtomicUsize::new(0));
    let counter = seen.clone();
    let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, _: Context<ConfigMap>| {
        if key.name() == "a" {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        async { Ok::<_, Error>(Action::done()) }
    })
    .source(Timer::every(Duration::from_millis(5), |cx| cx.lister::<ConfigMap>()?.keys()).jitter(0.5));
    let running = cluster.run_restricted(Manager::new(client).controller(controller)).await;
    eventually(SOON, || async {
        let seen = seen.load(Ordering::SeqCst);
        if seen >= 5 { Ok(()) } else { Err(format!("reconciled {seen} times")) }
    })
    .await;
    running.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_poller_enqueues_changes_and_outlives_failures() {
    let cluster = TestCluster::start().await;
    let reconciled = Reconciled::default();
    let polls = Arc::new(AtomicUsize::new(0));
    let poll = {
        let polls = polls.clone();
        move || {
            let poll = polls.fetch_add(1, Ordering::SeqCst);
            async move {
                match poll {
                    0 => Ok(BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), 1)])),
                    1 => Err(io::Error::other("the other system is down")),
                    2 => panic!("a bug"),
                    _ => Ok(BTreeMap::from([("a".to_owned(), 2)])),
                }
            }
        }
    };
    let controller = reconciled.controller().source(Poller::every(Duration::from_millis(2), poll));
    let running = cluster.run_restricted(Manager::new(cluster.client()).controller(controller)).await;
    reconciled.eventually(&["a", "a", "b", "b"]).await;
    let before = polls.load(Ordering::SeqCst);
    eventually(SOON, || async {
        if polls.load(Ordering::SeqCst) > before + 3 { Ok(()) } else { Err("no polls") }
    })
    .await;
    assert_eq!(reconciled.sorted().len(), 4, "equal states enqueue nothing");
    running.stop().await.expect("a graceful end");
}
