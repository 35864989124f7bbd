use std::{sync::Arc, time::Duration};

use http::{Method, Request, header};
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{ConfigMap, Event},
};
use kube_client::{
    Api, Client,
    api::{ListParams, PostParams},
    client::Body,
};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};
use windlass_runtime::{
    Action, Context, Controller, Manager, ObjectKey, Result,
    leader_election::{LeaderElection, Timing},
};
use windlass_test::{RestrictedAccount, TestCluster, eventually, stretched};

use crate::{
    fault::Faults,
    fixture::{Running, SOON, create_config_map, metric, run},
};

/// Short times, for a machine that renews a Lease in time.
fn timing() -> Timing {
    let seconds = |seconds| Duration::from_secs(stretched(Duration::from_secs(seconds)).as_secs());
    Timing {
        lease_duration: seconds(3),
        renew_deadline: seconds(2),
        retry_period: Duration::from_millis(300),
    }
}

/// The reconciled objects, with the reconciling replica.
type Notes = Arc<Mutex<Vec<String>>>;

fn replica(client: Client, name: &'static str, notes: &Notes) -> Manager {
    let notes = notes.clone();
    let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, _: Context<ConfigMap>| {
        notes.lock().push(format!("{name} {}", key.name()));
        async { Ok::<_, std::convert::Infallible>(Action::done()) }
    });
    let election = LeaderElection::new("operator").identity(name).timing(timing());
    Manager::new(client).controller(controller).leader_election(election)
}

/// Creates an account with the rights of a replica. The Lease is in the account's namespace.
async fn account(cluster: &TestCluster) -> RestrictedAccount {
    cluster.restricted_account(&replica(cluster.client(), "any", &Notes::default())).await
}

async fn holder(client: &Client) -> String {
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let lease = leases.get("operator").await.ok();
    lease.and_then(|lease| lease.spec?.holder_identity).unwrap_or_default()
}

async fn wait_for(notes: &Notes, line: &str) {
    eventually(SOON, || async {
        let notes = notes.lock();
        if notes.iter().any(|note| note == line) {
            Ok(())
        } else {
            Err(format!("{line:?} is not in {notes:?}"))
        }
    })
    .await;
}

async fn leads(client: &Client, name: &str) {
    eventually(SOON, || async {
        let holder = holder(client).await;
        if holder == name { Ok(()) } else { Err(format!("{holder:?} leads, not {name}")) }
    })
    .await;
}

#[tokio::test]
async fn one_works_and_hands_over_when_it_stops() -> Result<()> {
    let cluster = TestCluster::start().await;
    let operator = account(&cluster).await;
    let client = operator.client();
    let notes = Notes::default();
    create_config_map(&cluster.client(), "first").await;
    let a = run(replica(client.clone(), "a", &notes));
    wait_for(&notes, "a first").await;
    let b = run(replica(client.clone(), "b", &notes));
    create_config_map(&cluster.client(), "second").await;
    wait_for(&notes, "a second").await;
    assert!(!notes.lock().iter().any(|note| note.starts_with('b')), "b stands by");

    let begun = Instant::now();
    a.stop().await?;
    wait_for(&notes, "b first").await;
    assert!(begun.elapsed() < timing().lease_duration, "released, not waited for: {:?}", begun.elapsed());
    create_config_map(&cluster.client(), "third").await;
    wait_for(&notes, "b third").await;
    assert!(!notes.lock().iter().any(|note| note == "a third"));
    b.stop().await?;
    assert_eq!(holder(&client).await, "", "the last one gives it back, too");
    operator.assert_exact();
    Ok(())
}

/// The leader knows the spec of the Lease.
#[tokio::test]
async fn a_renewal_asks_for_the_metadata_only() -> Result<()> {
    let cluster = TestCluster::start().await;
    let accepted = Arc::<Mutex<Vec<String>>>::default();
    let service = {
        let (server, accepted) = (cluster.client(), accepted.clone());
        tower::service_fn(move |request: Request<Body>| {
            if *request.method() == Method::PUT && request.uri().path().contains("/leases/") {
                let accept = &request.headers()[header::ACCEPT];
                accepted.lock().push(accept.to_str().expect("text").to_owned());
            }
            let server = server.clone();
            async move { server.send(request).await }
        })
    };
    let a = run(replica(windlass_runtime::client::in_process(service)?, "a", &Notes::default()));
    eventually(SOON, || async {
        let renewals = accepted.lock().len();
        if renewals >= 2 { Ok(()) } else { Err(format!("{renewals} renewals")) }
    })
    .await;
    a.stop().await?;
    let other = accepted.lock().iter().find(|accept| !accept.contains("as=PartialObjectMetadata;")).cloned();
    assert_eq!(other, None);
    assert_eq!(holder(&cluster.client()).await, "", "the Lease is released");
    Ok(())
}

#[tokio::test]
async fn losing_the_lease_ends_the_manager_with_an_error() {
    let cluster = TestCluster::start().await;
    let operator = account(&cluster).await;
    let client = operator.client();
    let notes = Notes::default();
    let faults = Faults::before(client.clone());
    let manager = replica(faults.client(), "a", &notes);
    let metrics = manager.metrics().clone();
    let a = run(manager);
    leads(&client, "a").await;
    // A renewal that fails once is repeated after the Lease was read.
    faults.answer(Method::PUT, "/leases/", 500, "InternalError", None);
    eventually(SOON, || async {
        let count = metric(&metrics.render(), "leader_election_slowpath_total{name=\"operator\"}");
        if count == 1 { Ok(()) } else { Err(format!("{count}")) }
    })
    .await;
    // From now on the server fails every request for a Lease.
    for _ in 0..100 {
        faults.answer(Method::PUT, "/leases/", 500, "InternalError", None);
        faults.answer(Method::GET, "/leases/", 500, "InternalError", None);
    }
    let error = a.ended().await.expect_err("it lost the lease");
    assert!(error.is_lost_leadership(), "{error}");
    assert_eq!(metric(&metrics.render(), "leader_election_slowpath_total{name=\"operator\"}"), 1);
    let b = run(replica(client.clone(), "b", &notes));
    leads(&client, "b").await;
    b.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_lease_taken_by_force_ends_the_leader() {
    let cluster = TestCluster::start().await;
    let operator = account(&cluster).await;
    let client = operator.client();
    let a = run(replica(client.clone(), "a", &Notes::default()));
    leads(&client, "a").await;
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    eventually(SOON, || async {
        let mut lease = leases.get("operator").await.map_err(|e| e.to_string())?;
        if let Some(spec) = &mut lease.spec {
            spec.holder_identity = Some("thief".to_owned());
        }
        leases.replace("operator", &PostParams::default(), &lease).await.map(drop).map_err(|e| e.to_string())
    })
    .await;
    let error = a.ended().await.expect_err("it lost the lease");
    assert!(error.is_lost_leadership(), "{error}");
    assert_eq!(holder(&client).await, "thief");
}

#[tokio::test]
async fn the_metric_says_who_leads_and_odd_times_are_refused() {
    let cluster = TestCluster::start().await;
    let operator = account(&cluster).await;
    let manager = replica(operator.client(), "a", &Notes::default());
    let metrics = manager.metrics().clone();
    let a: Running = run(manager);
    eventually(SOON, || async {
        let leads = metric(&metrics.render(), "leader_election_master_status{name=\"operator\"}");
        if leads == 1 { Ok(()) } else { Err(format!("{leads}")) }
    })
    .await;
    a.stop().await.expect("a graceful end");

    let odd = LeaderElection::new("x")
        .timing(Timing { renew_deadline: Duration::from_secs(15), ..Timing::default() });
    let error = run(Manager::new(operator.client()).leader_election(odd)).ended().await.expect_err("refused");
    assert_eq!(
        error.to_string(),
        "leader election \"x\": lease_duration, in whole seconds, must be longer than renew_deadline"
    );
}

#[tokio::test]
async fn becoming_and_ceasing_to_be_the_leader_are_events_on_the_lease() {
    let cluster = TestCluster::start().await;
    let operator = account(&cluster).await;
    let client = operator.client();
    let a = run(replica(client.clone(), "a", &Notes::default()));
    leads(&client, "a").await;
    a.stop().await.expect("a graceful end");
    let events: Api<Event> = Api::namespaced(cluster.client(), operator.namespace());
    let listed = events.list(&ListParams::default()).await.expect("listed");
    let told: Vec<_> = listed
        .items
        .iter()
        .filter(|event| event.involved_object.kind.as_deref() == Some("Lease"))
        .map(|event| (event.reason.as_deref().unwrap_or(""), event.message.as_deref().unwrap_or("")))
        .collect();
    assert_eq!(told, [("LeaderElection", "a became leader"), ("LeaderElection", "a stopped leading")]);
    let lease: Lease = Api::default_namespaced(client).get("operator").await.expect("there");
    assert_eq!(listed.items[0].involved_object.uid, lease.metadata.uid);
}

#[tokio::test]
async fn the_lease_has_the_labels_that_were_set_and_keeps_others() {
    let cluster = TestCluster::start().await;
    let operator = account(&cluster).await;
    let client = operator.client();
    let leases: Api<Lease> = Api::default_namespaced(client.clone());
    let others =
        serde_json::json!({ "metadata": { "name": "operator", "labels": { "team": "web", "tier": "old" } } });
    let others = serde_json::from_value(others).expect("a Lease");
    leases.create(&PostParams::default(), &others).await.expect("created");
    let election =
        LeaderElection::new("operator").identity("a").timing(timing()).label("tier", "new").label("app", "x");
    let a = run(Manager::new(client.clone()).leader_election(election));
    leads(&client, "a").await;
    let labels = leases.get("operator").await.expect("there").metadata.labels.unwrap_or_default();
    let labels: Vec<_> = labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(labels, [("app", "x"), ("team", "web"), ("tier", "new")]);
    a.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_controller_without_election_works_on_a_stand_by() {
    let cluster = TestCluster::start().await;
    let operator = account(&cluster).await;
    let client = operator.client();
    let a = run(replica(client.clone(), "a", &Notes::default()));
    leads(&client, "a").await;
    let notes = Notes::default();
    let own = notes.clone();
    let everywhere = Controller::of::<ConfigMap>(move |key: ObjectKey, _: Context<ConfigMap>| {
        own.lock().push(format!("everywhere {}", key.name()));
        async { Ok::<_, std::convert::Infallible>(Action::done()) }
    });
    let everywhere = everywhere.named("everywhere").without_leader_election();
    let b = run(replica(client.clone(), "b", &notes).controller(everywhere));
    create_config_map(&cluster.client(), "first").await;
    wait_for(&notes, "everywhere first").await;
    assert!(!notes.lock().iter().any(|note| note.starts_with("b ")), "b stands by");
    b.stop().await.expect("a graceful end");
    a.stop().await.expect("a graceful end");
}

#[tokio::test]
async fn a_reconcile_does_not_run_on_after_its_process_was_suspended() {
    let cluster = TestCluster::start().await;
    let operator = account(&cluster).await;
    let client = operator.client();
    create_config_map(&cluster.client(), "first").await;
    let notes = Notes::default();
    let controller = {
        let notes = notes.clone();
        Controller::of::<ConfigMap>(move |_: ObjectKey, _: Context<ConfigMap>| {
            let notes = notes.clone();
            async move {
                notes.lock().push("began".to_owned());
                // All of this thread's tasks stand still, as in a process that is suspended.
                std::thread::sleep(timing().renew_deadline + Duration::from_millis(200));
                tokio::task::yield_now().await;
                notes.lock().push("ran on".to_owned());
                Ok::<_, std::convert::Infallible>(Action::done())
            }
        })
    };
    let election = LeaderElection::new("operator").identity("a").timing(timing());
    let a = run(Manager::new(client).controller(controller).leader_election(election));
    let error = a.ended().await.expect_err("it lost the lease");
    assert!(error.is_lost_leadership(), "{error}");
    assert_eq!(*notes.lock(), ["began"]);
}

/// Blocks the thread when dropped, and then records the time.
struct SlowDrop(Arc<Mutex<Option<Instant>>>);

impl Drop for SlowDrop {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_millis(300));
        *self.0.lock() = Some(Instant::now());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn the_lease_is_released_after_aborted_workers_have_ended() {
    let cluster = TestCluster::start().await;
    let operator = account(&cluster).await;
    let client = operator.client();
    create_config_map(&cluster.client(), "a").await;
    let (begun, dropped) = (Arc::new(Notify::new()), Arc::new(Mutex::new(None)));
    let controller = {
        let (begun, dropped) = (begun.clone(), dropped.clone());
        Controller::of::<ConfigMap>(move |_: ObjectKey, _: Context<ConfigMap>| {
            let (begun, guard) = (begun.clone(), SlowDrop(dropped.clone()));
            async move {
                begun.notify_one();
                let _guard = guard;
                std::future::pending::<Result<Action>>().await
            }
        })
    };
    let manager = Manager::new(client.clone())
        .controller(controller)
        .leader_election(LeaderElection::new("operator").identity("a"))
        .graceful_shutdown_timeout(Some(Duration::from_millis(50)));
    let a = run(manager);
    begun.notified().await;
    let released = tokio::spawn({
        let client = client.clone();
        async move {
            while !holder(&client).await.is_empty() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            Instant::now()
        }
    });
    a.stop().await.expect_err("the reconcile did not end");
    let dropped = dropped.lock().expect("the worker has ended");
    assert!(dropped < released.await.expect("no panic"), "released while a worker still ran");
}
