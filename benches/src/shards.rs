//! Reconciles per second of one, two and four replicas that split the keys of a controller. A reconcile reads
//! the object from the cache and waits for an external system; each replica has few workers, so that the
//! workers limit the replica, not the processor.

use crate::cell::Cell;
use crate::process;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::Client;
use kube_client::api::{Api, ObjectMeta, PostParams};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass_apiserver::{Identity, Server};
use windlass_runtime::leader_election::Timing;
use windlass_runtime::sharding::Sharding;
use windlass_runtime::{Action, Context, Controller, Manager, ObjectKey, Result};

/// How long a reconcile waits.
const EXTERNAL: Duration = Duration::from_millis(10);
/// The concurrency of each replica.
const WORKERS: usize = 16;
const MEASURED: Duration = Duration::from_secs(5);
/// New replicas find each other within the renewal interval of a Lease.
const TIMING: Timing = Timing {
    lease_duration: Duration::from_secs(15),
    renew_deadline: Duration::from_secs(10),
    retry_period: Duration::from_millis(500),
};

/// A manager at work.
struct Replica {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<()>>,
    reconciles: Arc<AtomicU64>,
    manager: windlass_runtime::Metrics,
}

/// Measures with `objects` objects. `rate1`, `rate2` and `rate4` are the total reconciles per second;
/// `scale2` and `scale4` are the rates per replica, relative to a single replica.
pub(crate) fn run(objects: usize) -> Cell {
    crate::runtime().block_on(async {
        let server = server();
        let maps: Api<ConfigMap> = Api::default_namespaced(client(&server));
        for number in 0..objects {
            let metadata = ObjectMeta { name: Some(format!("object-{number}")), ..ObjectMeta::default() };
            let map = ConfigMap { metadata, ..ConfigMap::default() };
            maps.create(&PostParams::default(), &map).await.expect("created");
        }
        let one = measure(&server, 1).await;
        let two = measure(&server, 2).await;
        let processor = process::processor();
        let began = Instant::now();
        let four = measure(&server, 4).await;
        let cores = (process::processor() - processor) / began.elapsed().as_secs_f64();
        Cell::default()
            .with("rate1", one)
            .with("rate2", two)
            .with("rate4", four)
            .with("scale2", two / one / 2.0)
            .with("scale4", four / one / 4.0)
            .with("cores", cores)
    })
}

async fn measure(server: &Server, replicas: usize) -> f64 {
    let replicas: Vec<Replica> =
        (0..replicas).map(|number| Replica::start(server, replicas, number)).collect();
    for replica in &replicas {
        while !replica.works_beside(replicas.len()) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let count = || replicas.iter().map(|replica| replica.reconciles.load(Ordering::Relaxed)).sum::<u64>();
    let (before, began) = (count(), Instant::now());
    tokio::time::sleep(MEASURED).await;
    let rate = (count() - before) as f64 / began.elapsed().as_secs_f64();
    for replica in replicas {
        let _ = replica.stop.send(());
        replica.task.await.expect("no panic").expect("a graceful end");
    }
    rate
}

impl Replica {
    fn start(server: &Server, of: usize, number: usize) -> Self {
        let reconciles = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&reconciles);
        let controller = Controller::of::<ConfigMap>(move |key: ObjectKey, cx: Context<ConfigMap>| {
            let counted = Arc::clone(&counted);
            async move {
                let exists = cx.get(&key)?.is_some();
                tokio::time::sleep(EXTERNAL).await;
                counted.fetch_add(1, Ordering::Relaxed);
                Ok::<_, windlass_runtime::Error>(if exists {
                    Action::requeue_after(Duration::from_millis(1))
                } else {
                    Action::done()
                })
            }
        });
        let sharding =
            Sharding::new(format!("bench-{of}")).identity(format!("replica-{number}")).timing(TIMING);
        let manager = Manager::new(client(server))
            .controller(controller.max_concurrent_reconciles(WORKERS).sharded())
            .sharding(sharding);
        let metrics = manager.metrics().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(manager.run_until(async {
            let _ = stopped.await;
        }));
        Self { stop, task, reconciles, manager: metrics }
    }

    /// Returns whether this replica shares the keys with all other replicas and reconciles its own keys.
    fn works_beside(&self, members: usize) -> bool {
        let text = self.manager.render();
        let value = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<usize>().ok()).unwrap_or(0)
        };
        value("windlass_sharding_members ") == members
            && value("windlass_sharding_waiting_keys{controller=\"configmap\"} ") == 0
            && self.reconciles.load(Ordering::Relaxed) > 0
    }
}

fn client(server: &Server) -> Client {
    Client::new(server.service(Identity::admin()), "default")
}

fn server() -> Server {
    Server::builder().build().expect("the server starts")
}
