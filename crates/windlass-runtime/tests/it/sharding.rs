//! Several replicas that split the keys. With `WINDLASS_TEST_KUBECONFIG` the replicas run on the server of
//! that kubeconfig.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{
    api::{
        coordination::v1::Lease,
        core::v1::{ConfigMap, Namespace, Secret},
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube_client::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{task::JoinHandle, time::Instant};
use windlass_runtime::{
    Action, Context, Controller, Manager, ObjectKey, Result, Watch,
    env::Env,
    kind,
    leader_election::{LeaderElection, Timing},
    manager::Cluster,
    sharding::Sharding,
};
use windlass_test::{RestrictedAccount, TestCluster, eventually, stretched};

use crate::{
    fault::Faults,
    fixture::{Running, SOON, expect_eq, metric, run},
};

/// Short times, for a machine that renews a Lease in time.
fn timing() -> Timing {
    let seconds = |seconds| Duration::from_secs(stretched(Duration::from_secs(seconds)).as_secs());
    Timing {
        lease_duration: seconds(4),
        renew_deadline: seconds(2),
        retry_period: Duration::from_millis(300),
    }
}

const OBJECTS: usize = 60;

/// Asks for more work on the key soon.
fn again() -> Action {
    Action::requeue_after(Duration::from_millis(20))
}

/// A namespace on a server, with objects to reconcile.
struct World {
    cluster: TestCluster,
    /// An administrator's.
    client: Client,
    namespace: String,
    work: Work,
}

/// The work of the replicas, as seen from outside.
#[derive(Clone, Default)]
struct Work(Arc<Mutex<Observed>>);

#[derive(Default)]
struct Observed {
    /// The replica that works on a key now.
    now: BTreeMap<ObjectKey, &'static str>,
    /// The replica that worked on a key last.
    last: BTreeMap<ObjectKey, &'static str>,
    /// The keys that two replicas worked on at once.
    twice: Vec<String>,
}

/// Ends the work on a key, also when the reconcile is cancelled.
struct AtWork(Work, ObjectKey);

impl Work {
    fn begin(&self, key: &ObjectKey, replica: &'static str) -> AtWork {
        let mut observed = self.0.lock();
        if let Some(other) = observed.now.insert(key.clone(), replica) {
            observed.twice.push(format!("{key} by {other} and {replica}"));
        }
        observed.last.insert(key.clone(), replica);
        drop(observed);
        AtWork(self.clone(), key.clone())
    }

    /// Waits until every object was worked on after the call, by these replicas only and by each of these
    /// replicas.
    async fn is_shared_by(&self, replicas: &[&str]) {
        self.0.lock().last.clear();
        eventually(SOON, || async {
            let mut observed = self.0.lock();
            let by: BTreeSet<_> = observed.last.values().copied().collect();
            if observed.last.len() == OBJECTS && by.iter().copied().eq(replicas.iter().copied()) {
                return Ok(());
            }
            let result = format!("{} keys were worked on, by {by:?}", observed.last.len());
            // The last work of a former owner does not count.
            observed.last.retain(|_, replica| replicas.contains(replica));
            Err(result)
        })
        .await;
    }

    fn assert_never_twice(&self) {
        let observed = self.0.lock();
        assert!(observed.twice.is_empty(), "{:?}", observed.twice);
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.0.0.lock().now.remove(&self.1);
    }
}

impl World {
    async fn start() -> Self {
        let cluster = TestCluster::from_env().await;
        let client = cluster.client();
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let namespace = Namespace {
            metadata: ObjectMeta { generate_name: Some("sharding-".to_owned()), ..ObjectMeta::default() },
            ..Namespace::default()
        };
        let namespace = namespaces.create(&PostParams::default(), &namespace).await.expect("created");
        let namespace = namespace.metadata.name.expect("a name");
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        for number in 0..OBJECTS {
            let name = Some(format!("object-{number}"));
            let map =
                ConfigMap { metadata: ObjectMeta { name, ..ObjectMeta::default() }, ..ConfigMap::default() };
            maps.create(&PostParams::default(), &map).await.expect("created");
        }
        Self { cluster, client, namespace, work: Work::default() }
    }

    /// Returns a controller that works on each key, and then returns `again`.
    fn controller(&self, name: &'static str, again: Action) -> Controller {
        let work = self.work.clone();
        let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, _: Context<ConfigMap>| {
            let work = work.clone();
            async move {
                if !key.name().starts_with("object-") {
                    return Ok::<_, std::convert::Infallible>(Action::done());
                }
                let at_work = work.begin(&key, name);
                tokio::time::sleep(Duration::from_millis(5)).await;
                drop(at_work);
                Ok(again)
            }
        });
        controller.max_concurrent_reconciles(8).sharded()
    }

    /// A replica that works on each of its keys again and again.
    fn replica(&self, name: &'static str, client: Client) -> Manager {
        Manager::new(client)
            .namespaces([&self.namespace])
            .controller(self.controller(name, again()))
            .sharding(Sharding::new("shards").namespace(&self.namespace).identity(name).timing(timing()))
    }

    /// An account with the rights of a replica.
    async fn operator(&self) -> RestrictedAccount {
        self.cluster.restricted_account(&self.replica("any", self.client.clone())).await
    }

    fn start_replica(&self, name: &'static str, operator: &RestrictedAccount) -> Running {
        run(self.replica(name, operator.client()))
    }

    async fn leases(&self) -> Vec<Lease> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), &self.namespace);
        leases
            .list(&ListParams::default().labels("sharding.windlass.dev/group=shards"))
            .await
            .expect("listed")
            .items
    }

    async fn end(self) {
        self.work.assert_never_twice();
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let _ = namespaces.delete(&self.namespace, &DeleteParams::default()).await;
    }
}

/// Runs a manager that can be killed without a graceful end.
fn run_mortal(manager: Manager) -> JoinHandle<Result<()>> {
    tokio::spawn(manager.run_until(std::future::pending()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replicas_split_the_keys_and_hand_them_over() -> Result<()> {
    let world = World::start().await;
    let operator = world.operator().await;
    let a = world.start_replica("a", &operator);
    world.work.is_shared_by(&["a"]).await;
    let b = run_mortal(world.replica("b", operator.client()));
    let c = world.start_replica("c", &operator);
    world.work.is_shared_by(&["a", "b", "c"]).await;
    b.abort();
    world.work.is_shared_by(&["a", "c"]).await;
    let begun = Instant::now();
    c.stop().await?;
    world.work.is_shared_by(&["a"]).await;
    assert!(begun.elapsed() < timing().lease_duration, "given up, not waited for: {:?}", begun.elapsed());
    // The Leases of gone replicas are removed.
    eventually(SOON, || async {
        let leases = world.leases().await.len();
        if leases == 1 { Ok(()) } else { Err(format!("{leases} Leases")) }
    })
    .await;
    a.stop().await?;
    operator.assert_exact();
    operator.remove().await;
    world.end().await;
    Ok(())
}

/// The objects are in a further cluster only. Replica b works on its keys again and again, and replica a has
/// no more work: the periodic work is lost if replica a does not find the keys.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_keys_of_a_further_cluster_are_handed_over() -> Result<()> {
    let own = TestCluster::start().await;
    let edge = World::start().await;
    let replica = |name: &'static str, again: Action| {
        let controller =
            edge.controller(name, again).watch(Watch::primary(kind::<ConfigMap>()).in_cluster("edge"));
        let sharding = Sharding::new("shards").namespace("default").identity(name).timing(timing());
        run(Manager::new(own.client())
            .cluster(Cluster::new("edge", edge.client.clone()).namespaces([&edge.namespace]))
            .controller(controller)
            .sharding(sharding))
    };
    let keys_of = |name: &str| -> BTreeSet<ObjectKey> {
        let observed = edge.work.0.lock();
        observed.last.iter().filter(|(_, last)| **last == name).map(|(key, _)| key.clone()).collect()
    };
    let a = replica("a", Action::done());
    eventually(SOON, || async { expect_eq(keys_of("a").len(), OBJECTS) }).await;
    let b = replica("b", again());
    eventually(SOON, || async {
        let keys = keys_of("b").len();
        if keys > OBJECTS / 10 { Ok(()) } else { Err(format!("b has worked on {keys} keys")) }
    })
    .await;
    b.stop().await?;
    let moved = keys_of("b");
    eventually(SOON, || async {
        let lost = moved.difference(&keys_of("a")).count();
        if lost == 0 { Ok(()) } else { Err(format!("{lost} of {} keys are lost", moved.len())) }
    })
    .await;
    a.stop().await?;
    edge.end().await;
    Ok(())
}

/// The keys of a mapper have no object of the controller's own kind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_without_an_object_are_taken_over() -> Result<()> {
    let world = World::start().await;
    let by: Arc<Mutex<BTreeSet<(&str, ObjectKey)>>> = Arc::default();
    let replica = |name: &'static str, action: Action| {
        let by = by.clone();
        let controller = Controller::of::<Secret>(move |key: ObjectKey, _: Context<Secret>| {
            by.lock().insert((name, key));
            async move { Ok::<_, std::convert::Infallible>(action) }
        });
        let controller = controller.watches::<ConfigMap>(|map, _| {
            let name = map.metadata.name.as_deref().filter(|name| name.starts_with("object-"));
            let key = name.map(|name| ObjectKey::new(map.metadata.namespace.as_deref(), name));
            Ok(key.into_iter().collect())
        });
        let sharding = Sharding::new("shards").namespace(&world.namespace).identity(name).timing(timing());
        let manager = Manager::new(world.client.clone()).namespaces([&world.namespace]);
        run(manager.controller(controller.sharded()).sharding(sharding))
    };
    let keys_of = |name: &str| {
        let by = by.lock();
        by.iter().filter(|(replica, _)| *replica == name).map(|(_, key)| key.clone()).collect::<BTreeSet<_>>()
    };
    // The first replica ends its work on each key, and the second one has periodic work on its keys.
    let a = replica("a", Action::done());
    eventually(SOON, || async { expect_eq(keys_of("a").len(), OBJECTS) }).await;
    let b = replica("b", again());
    eventually(SOON, || async {
        let keys = keys_of("b").len();
        if keys > OBJECTS / 10 { Ok(()) } else { Err(format!("b has worked on {keys} keys")) }
    })
    .await;
    by.lock().retain(|(replica, _)| *replica == "b");
    b.stop().await?;
    let moved = keys_of("b");
    eventually(SOON, || async {
        let lost = moved.difference(&keys_of("a")).count();
        if lost == 0 { Ok(()) } else { Err(format!("{lost} of {} keys are lost", moved.len())) }
    })
    .await;
    a.stop().await?;
    world.end().await;
    Ok(())
}

/// A mapper returns more keys of other replicas than a replica remembers: 10,000. A replica that takes over keys asks the mapper again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_a_replica_could_not_remember_are_taken_over() -> Result<()> {
    const KEYS: usize = 22_000;
    let world = World::start().await;
    let by: Arc<Mutex<BTreeSet<(&str, ObjectKey)>>> = Arc::default();
    let replica = |name: &'static str| {
        let by = by.clone();
        let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, _: Context<ConfigMap>| {
            if key.name().starts_with("virtual-") {
                by.lock().insert((name, key));
            }
            async { Ok::<_, std::convert::Infallible>(Action::done()) }
        });
        let controller = controller.watches::<Secret>(|secret, _| {
            let namespace = secret.metadata.namespace.as_deref();
            Ok((0..KEYS).map(|number| ObjectKey::new(namespace, &format!("virtual-{number}"))).collect())
        });
        let sharding = Sharding::new("shards").namespace(&world.namespace).identity(name).timing(timing());
        let manager = Manager::new(world.client.clone()).namespaces([&world.namespace]);
        run(manager.controller(controller.sharded()).sharding(sharding))
    };
    let keys_of = |name: &str| by.lock().iter().filter(|(replica, _)| *replica == name).count();
    let (a, b) = (replica("a"), replica("b"));
    eventually(SOON, || async { expect_eq(world.leases().await.len(), 2) }).await;
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), &world.namespace);
    let name = Some("many".to_owned());
    let secret = Secret { metadata: ObjectMeta { name, ..ObjectMeta::default() }, ..Secret::default() };
    secrets.create(&PostParams::default(), &secret).await.expect("created");
    eventually(SOON, || async {
        let (a, b) = (keys_of("a"), keys_of("b"));
        if a + b >= KEYS && b > 10_000 { Ok(()) } else { Err(format!("{a} and {b} keys")) }
    })
    .await;
    b.stop().await?;
    eventually(SOON, || async { expect_eq(keys_of("a"), KEYS) }).await;
    a.stop().await?;
    world.end().await;
    Ok(())
}

/// The mapper of a controller without an own kind fails on a deleted object. Another replica leaves before the mapper works again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deletion_that_is_not_handled_yet_survives_a_take_over() -> Result<()> {
    let world = World::start().await;
    let (is_deleted, works) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
    // The calls of the mappers, by replica and name. A take-over calls the mapper for each object.
    let calls: Arc<Mutex<BTreeMap<(&str, String), usize>>> = Arc::default();
    let by: Arc<Mutex<BTreeSet<(&str, String)>>> = Arc::default();
    let start = |replica: &'static str| {
        let by = by.clone();
        let controller = Controller::<String>::keyed("names", move |key: String, _: Context<()>| {
            by.lock().insert((replica, key));
            async { Ok::<_, std::convert::Infallible>(Action::done()) }
        });
        let (is_deleted, works, calls) = (is_deleted.clone(), works.clone(), calls.clone());
        let controller = controller.watches::<ConfigMap>(move |map, _| {
            let name = map.metadata.name.clone().unwrap_or_default();
            if name != "object-0" || !is_deleted.load(Ordering::SeqCst) {
                *calls.lock().entry((replica, name.clone())).or_default() += 1;
                return Ok(vec![name]);
            }
            if !works.load(Ordering::SeqCst) {
                *calls.lock().entry((replica, "deleted".to_owned())).or_default() += 1;
                return Err(windlass_runtime::Error::other("the mapper's database is down"));
            }
            Ok(vec!["deleted".to_owned()])
        });
        let sharding = Sharding::new("shards").namespace(&world.namespace).identity(replica).timing(timing());
        let manager = Manager::new(world.client.clone()).namespaces([&world.namespace]);
        run(manager.controller(controller.sharded()).sharding(sharding))
    };
    let calls_of_a = |name: &str| calls.lock().get(&("a", name.to_owned())).copied().unwrap_or_default();
    let (a, b) = (start("a"), start("b"));
    eventually(SOON, || async { expect_eq(world.leases().await.len(), 2) }).await;
    let is_mapped = || (0..OBJECTS).all(|number| calls_of_a(&format!("object-{number}")) > 0);
    eventually(SOON, || async { expect_eq(is_mapped(), true) }).await;
    // A replica that does not know the other replica yet has nothing to take over.
    eventually(SOON, || async { expect_eq(by.lock().iter().any(|(replica, _)| *replica == "b"), true) })
        .await;
    is_deleted.store(true, Ordering::SeqCst);
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    maps.delete("object-0", &DeleteParams::default()).await.expect("deleted");
    eventually(SOON, || async { expect_eq(calls_of_a("deleted") > 0, true) }).await;
    let before = calls_of_a("object-1");
    b.stop().await?;
    eventually(SOON, || async { expect_eq(calls_of_a("object-1") > before, true) }).await;
    works.store(true, Ordering::SeqCst);
    let is_handled = || by.lock().contains(&("a", "deleted".to_owned()));
    eventually(SOON, || async { expect_eq(is_handled(), true) }).await;
    a.stop().await?;
    world.end().await;
    Ok(())
}

/// The clock of the program panics once, while the replica renews its Lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_while_a_lease_is_renewed_ends_no_membership() -> Result<()> {
    let world = World::start().await;
    let panics = Arc::new(AtomicBool::new(false));
    let clock = {
        let panics = panics.clone();
        move || {
            assert!(!panics.swap(false, Ordering::SeqCst), "on purpose");
            jiff::Timestamp::now()
        }
    };
    let manager = world.replica("a", world.client.clone()).env(Env::new(1, clock));
    let metrics = manager.metrics().clone();
    let a = run(manager);
    world.work.is_shared_by(&["a"]).await;
    panics.store(true, Ordering::SeqCst);
    let counted = || metric(&metrics.render(), "windlass_task_panics_total{task=\"sharding membership\"}");
    eventually(SOON, || async { expect_eq(counted(), 1) }).await;
    let version = || async {
        let lease = world.leases().await.pop();
        lease.and_then(|lease| lease.metadata.resource_version)
    };
    let before = version().await;
    eventually(SOON, || async {
        let now = version().await;
        if now.is_some() && now != before { Ok(()) } else { Err("the Lease is not renewed") }
    })
    .await;
    world.work.is_shared_by(&["a"]).await;
    a.stop().await?;
    world.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_that_is_cut_off_stops_its_work_and_comes_back() -> Result<()> {
    let world = World::start().await;
    let operator = world.operator().await;
    let a = world.start_replica("a", &operator);
    let faults = Faults::before(operator.client());
    let b = run(world.replica("b", faults.client()));
    world.work.is_shared_by(&["a", "b"]).await;
    faults.cut_off();
    // Replica b could continue: the reconciles need no server.
    world.work.is_shared_by(&["a"]).await;
    world.work.assert_never_twice();
    faults.reconnect();
    world.work.is_shared_by(&["a", "b"]).await;
    a.stop().await?;
    b.stop().await?;
    assert!(operator.rights().missing.is_empty(), "{}", operator.rights());
    operator.remove().await;
    world.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metrics_say_who_shares_and_a_key_that_is_worked_on_is_handed_over_later() -> Result<()> {
    let world = World::start().await;
    let operator = world.operator().await;
    let manager = world.replica("a", operator.client());
    let metrics = manager.metrics().clone();
    let a = run(manager);
    world.work.is_shared_by(&["a"]).await;
    let value = |name: &str| metric(&metrics.render(), name);
    let keys = "windlass_sharding_keys{controller=\"configmap\"}";
    assert_eq!(value("windlass_sharding_members"), 1);
    let all = value(keys);
    assert!(all >= OBJECTS as u64, "{all}");
    let b = world.start_replica("b", &operator);
    world.work.is_shared_by(&["a", "b"]).await;
    assert_eq!(value("windlass_sharding_members"), 2);
    assert_eq!(value("windlass_sharding_hand_overs_total"), 1);
    assert!((1..all).contains(&value(keys)), "{}", value(keys));
    assert_eq!(value("windlass_sharding_waiting_keys{controller=\"configmap\"}"), 0);
    b.stop().await?;
    a.stop().await?;
    operator.remove().await;
    world.end().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_controllers_of_the_manager_run_on_the_leader() -> Result<()> {
    let world = World::start().await;
    let led = Arc::new(Mutex::new(BTreeSet::new()));
    let replica = |name: &'static str, client: Client| {
        let led = led.clone();
        let controller = Controller::of::<ConfigMap>(move |_: ObjectKey, _: Context<ConfigMap>| {
            led.lock().insert(name);
            async { Ok::<_, std::convert::Infallible>(Action::done()) }
        });
        let election =
            LeaderElection::new("leader").namespace(&world.namespace).identity(name).timing(timing());
        let manager = world.replica(name, client);
        manager.controller(controller.named("elected")).leader_election(election)
    };
    let operator = world.cluster.restricted_account(&replica("any", world.client.clone())).await;
    let a = run(replica("a", operator.client()));
    eventually(SOON, || async { if led.lock().contains("a") { Ok(()) } else { Err("a does not lead") } })
        .await;
    let b = run(replica("b", operator.client()));
    world.work.is_shared_by(&["a", "b"]).await;
    assert!(!led.lock().contains("b"), "b stands by");
    a.stop().await?;
    world.work.is_shared_by(&["b"]).await;
    eventually(SOON, || async { if led.lock().contains("b") { Ok(()) } else { Err("b does not lead") } })
        .await;
    b.stop().await?;
    operator.assert_exact();
    operator.remove().await;
    world.end().await;
    Ok(())
}

#[tokio::test]
async fn keys_with_the_same_shard_key_are_on_one_replica() -> Result<()> {
    let world = World::start().await;
    let by = Arc::new(Mutex::new(BTreeMap::<ObjectKey, &str>::new()));
    let replica = |name: &'static str, client: Client| {
        let by = by.clone();
        let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, _: Context<ConfigMap>| {
            by.lock().insert(key, name);
            async { Ok::<_, std::convert::Infallible>(Action::requeue_after(Duration::from_millis(20))) }
        });
        let controller = controller.sharded_by(|key| key.namespace().unwrap_or_default().to_owned());
        let sharding = Sharding::new("shards").namespace(&world.namespace).identity(name).timing(timing());
        Manager::new(client).namespaces([&world.namespace]).controller(controller).sharding(sharding)
    };
    let operator = world.cluster.restricted_account(&replica("any", world.client.clone())).await;
    let (a, b) = (run(replica("a", operator.client())), run(replica("b", operator.client())));
    eventually(SOON, || async {
        let leases = world.leases().await;
        let yields = |lease: &Lease| {
            let annotations = lease.metadata.annotations.as_ref()?;
            annotations.get("sharding.windlass.dev/yields-to").filter(|members| !members.is_empty()).cloned()
        };
        let members = leases.iter().filter_map(yields).count();
        if members == 2 { Ok(()) } else { Err(format!("{members} replicas know each other")) }
    })
    .await;
    by.lock().clear();
    eventually(SOON, || async {
        let by = by.lock();
        if by.len() > OBJECTS / 2 { Ok(()) } else { Err(format!("{} keys", by.len())) }
    })
    .await;
    assert_eq!(by.lock().values().collect::<BTreeSet<_>>().len(), 1);
    a.stop().await?;
    b.stop().await?;
    operator.remove().await;
    world.end().await;
    Ok(())
}

/// Replica b writes objects that replica a has written, and replica a writes the objects once more after replica b has left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_with_own_writes_are_taken_over() -> Result<()> {
    let world = World::start().await;
    let replica = |name: &'static str| {
        let controller =
            Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| async move {
                let Some(map) = cx.get(&key)?.filter(|_| key.name().starts_with("object-")) else {
                    return Ok(Action::done());
                };
                let by = Some([("by".to_owned(), name.to_owned())].into());
                if map.data != by {
                    cx.update(&ConfigMap { data: by, ..ConfigMap::clone(&map) }).await?;
                }
                Ok::<_, windlass_runtime::Error>(Action::done())
            });
        let sharding = Sharding::new("shards").namespace(&world.namespace).identity(name).timing(timing());
        let controller = controller.max_concurrent_reconciles(8).sharded().skip_own_writes();
        run(Manager::new(world.client.clone())
            .namespaces([&world.namespace])
            .controller(controller)
            .sharding(sharding))
    };
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let written_by = async |name: &str| {
        let maps = maps.list(&ListParams::default()).await.expect("listed").items;
        let by =
            |map: &ConfigMap| map.data.as_ref().and_then(|data| data.get("by")).is_some_and(|by| by == name);
        maps.iter().filter(|map| by(map)).count()
    };
    let a = replica("a");
    eventually(SOON, || async { expect_eq(written_by("a").await, OBJECTS) }).await;
    let b = replica("b");
    eventually(SOON, || async {
        let count = written_by("b").await;
        if count > OBJECTS / 10 { Ok(()) } else { Err(format!("b has written {count} objects")) }
    })
    .await;
    b.stop().await?;
    eventually(SOON, || async { expect_eq(written_by("a").await, OBJECTS) }).await;
    a.stop().await?;
    world.end().await;
    Ok(())
}

/// The program's function for the shard of a key panics once for each of some keys, when the objects change.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_the_shard_key_loses_no_key() -> Result<()> {
    let world = World::start().await;
    let panics: Arc<Mutex<BTreeSet<ObjectKey>>> = Arc::default();
    let shard_key = {
        let panics = panics.clone();
        move |key: &ObjectKey| {
            let is_chosen = panics.lock().remove(key);
            assert!(!is_chosen, "on purpose");
            key.to_string()
        }
    };
    let controller = world.controller("a", Action::done()).sharded_by(shard_key);
    let sharding = Sharding::new("shards").namespace(&world.namespace).identity("a").timing(timing());
    let manager = Manager::new(world.client.clone())
        .namespaces([&world.namespace])
        .controller(controller)
        .sharding(sharding);
    let metrics = manager.metrics().clone();
    let a = run(manager);
    let worked_on = || world.work.0.lock().last.len();
    eventually(SOON, || async { expect_eq(worked_on(), OBJECTS) }).await;

    let chosen = (0..5).map(|number| ObjectKey::namespaced(&world.namespace, &format!("object-{number}")));
    panics.lock().extend(chosen);
    world.work.0.lock().last.clear();
    let maps: Api<ConfigMap> = Api::namespaced(world.client.clone(), &world.namespace);
    let mark = Patch::Merge(json!({ "metadata": { "annotations": { "marked": "yes" } } }));
    for number in 0..OBJECTS {
        let patched = maps.patch(&format!("object-{number}"), &PatchParams::default(), &mark).await;
        patched.expect("patched");
    }
    eventually(SOON, || async { expect_eq(worked_on(), OBJECTS) }).await;
    let counted =
        metric(&metrics.render(), "windlass_task_panics_total{task=\"worker of controller configmap\"}");
    assert_eq!(counted, 5);
    a.stop().await?;
    world.end().await;
    Ok(())
}

/// The program's function for the shard of a key panics once, while a replica takes over the keys of another replica.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_during_a_take_over_loses_no_key() -> Result<()> {
    let world = World::start().await;
    let panics = Arc::new(AtomicBool::new(false));
    let manager = |name: &'static str, again: Action| {
        let panics = panics.clone();
        let shard_key = move |key: &ObjectKey| {
            let is_chosen = name == "a" && panics.swap(false, Ordering::SeqCst);
            assert!(!is_chosen, "on purpose");
            key.to_string()
        };
        let controller = world.controller(name, again).sharded_by(shard_key);
        let sharding = Sharding::new("shards").namespace(&world.namespace).identity(name).timing(timing());
        let manager = Manager::new(world.client.clone()).namespaces([&world.namespace]);
        manager.controller(controller).sharding(sharding)
    };
    let keys_of = |name: &str| world.work.0.lock().last.values().filter(|last| **last == name).count();
    let a = manager("a", Action::done());
    let metrics = a.metrics().clone();
    let a = run(a);
    eventually(SOON, || async { expect_eq(keys_of("a"), OBJECTS) }).await;
    let b = run(manager("b", again()));
    eventually(SOON, || async {
        let keys = keys_of("b");
        if keys > OBJECTS / 10 { Ok(()) } else { Err(format!("b has worked on {keys} keys")) }
    })
    .await;
    panics.store(true, Ordering::SeqCst);
    b.stop().await?;
    eventually(SOON, || async { expect_eq(keys_of("a"), OBJECTS) }).await;
    let task = "windlass_task_panics_total{task=\"take-over of keys of controller configmap\"}";
    assert_eq!(metric(&metrics.render(), task), 1);
    a.stop().await?;
    world.end().await;
    Ok(())
}

#[tokio::test]
async fn a_sharded_controller_needs_a_sharded_manager() {
    let cluster = TestCluster::start().await;
    let controller = Controller::of::<ConfigMap>(|_: ObjectKey, _: Context<ConfigMap>| async {
        Ok::<_, std::convert::Infallible>(Action::done())
    });
    let error = run(Manager::new(cluster.client()).controller(controller.sharded())).ended().await;
    assert_eq!(
        error.expect_err("refused").to_string(),
        "controller \"configmap\" is sharded, but the manager is not: call `Manager::sharding`"
    );
    let error = run(Manager::new(cluster.client()).sharding(Sharding::new("My_Operator"))).ended().await;
    assert_eq!(
        error.expect_err("refused").to_string(),
        "sharding \"My_Operator\": the name must have 1 to 46 lower-case letters, digits and `-`, and begin with no `-`"
    );
}
