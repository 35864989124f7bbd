//! An operator at work: ConfigMaps that each own a Secret, on an API server in a separate process. The peers
//! have the same operator.

use crate::cell::Cell;
use crate::process;
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube_client::api::{Api, ObjectMeta, PostParams};
use kube_client::{Client, Config, config};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use windlass_runtime::client::ClientBuilder;
use windlass_runtime::owner::Owned;
use windlass_runtime::{Action, Context, Controller, Manager, ObjectKey, Result};

/// The namespace of the objects.
const NAMESPACE: &str = "bench";
/// The concurrency of the controller.
const WORKERS: usize = 16;
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of ConfigMaps
    #[arg(long)]
    objects: usize,
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The processes of the server
    #[arg(long, value_delimiter = ',', hide = true)]
    processes: Vec<u32>,
    /// Only creates the ConfigMaps
    #[arg(long)]
    prepare: bool,
    /// How often each key is reconciled again once all children exist; 0 shows only the creates to a profiler
    #[arg(long, default_value_t = 20)]
    rounds: u64,
}

/// The progress of the reconciles.
struct Progress {
    began: Instant,
    first: OnceLock<Instant>,
    reconciles: AtomicU64,
    created: AtomicU64,
}

impl Progress {
    fn reconciles(&self) -> u64 {
        self.reconciles.load(Ordering::Relaxed)
    }

    fn created(&self) -> u64 {
        self.created.load(Ordering::Relaxed)
    }
}

/// `first` is the time from the start of the process to the first reconcile; `seconds` and `rate` are the
/// time until each ConfigMap has a Secret, and the children per second. `round_rate` is reconciles that read
/// two objects from the caches and write no object.
pub(crate) fn run(args: &Args) -> Cell {
    let began = Instant::now();
    crate::runtime().block_on(async {
        let client = client(args).await;
        if args.prepare {
            prepare(&client, args.objects).await;
            return Cell::default();
        }
        operate(client, args, began).await
    })
}

async fn client(args: &Args) -> Client {
    let kubeconfig = config::Kubeconfig::read_from(&args.kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &config::KubeConfigOptions::default()).await;
    ClientBuilder::new(config.expect("a configuration")).build().expect("a client")
}

async fn prepare(client: &Client, objects: usize) {
    let namespace = Namespace { metadata: named(NAMESPACE), ..Namespace::default() };
    Api::all(client.clone()).create(&PostParams::default(), &namespace).await.expect("created");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let create = |number: usize| {
        let maps = maps.clone();
        async move {
            let data = Some(BTreeMap::from([("text".to_owned(), "x".repeat(600))]));
            let map = ConfigMap { metadata: named(&name(number)), data, ..ConfigMap::default() };
            maps.create(&PostParams::default(), &map).await.expect("created");
        }
    };
    futures::stream::iter(0..objects).for_each_concurrent(32, create).await;
}

fn name(number: usize) -> String {
    format!("object-{number}")
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

async fn operate(client: Client, args: &Args, began: Instant) -> Cell {
    let objects = args.objects as u64;
    let progress = Arc::new(Progress {
        began,
        first: OnceLock::new(),
        reconciles: AtomicU64::new(0),
        created: AtomicU64::new(0),
    });
    let controller = Controller::of::<ConfigMap>({
        let progress = Arc::clone(&progress);
        move |key: ObjectKey, cx: Context<ConfigMap>| reconcile(key, cx, Arc::clone(&progress))
    });
    let controller = controller.owns::<Secret>().max_concurrent_reconciles(WORKERS);
    let handle = controller.handle();
    let manager = Manager::new(client).namespaces([NAMESPACE]).controller(controller);
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(manager.run_until(async {
        let _ = stopped.await;
    }));
    until(|| task.is_finished() || progress.created() >= objects).await;
    assert!(!task.is_finished(), "the manager ended: {:?}", task.await);
    let (seconds, processor) = (began.elapsed().as_secs_f64(), process::processor());
    let peak = process::peak();

    let keys: Vec<ObjectKey> =
        (0..objects as usize).map(|number| ObjectKey::new(Some(NAMESPACE), &name(number))).collect();
    let (before, round) = (process::processor(), Instant::now());
    for _ in 0..args.rounds {
        let wanted = progress.reconciles() + objects;
        keys.iter().for_each(|key| handle.enqueue(key.clone()));
        until(|| progress.reconciles() >= wanted).await;
    }
    let (round, round_processor) = (round.elapsed().as_secs_f64(), process::processor() - before);
    let _ = stop.send(());
    task.await.expect("no panic").expect("a graceful end");
    let first = progress.first.get().expect("a reconcile").duration_since(progress.began).as_secs_f64();
    let rounds = (objects * args.rounds) as f64;
    Cell::rate(objects as f64 / seconds)
        .with("peak", peak as f64)
        .with("first", first)
        .with("seconds", seconds)
        .with("processor_each", processor / objects as f64)
        .with("round_rate", rounds / round)
        .with("round_processor_each", round_processor / rounds)
}

/// Creates the Secret of a ConfigMap, unless the Secret exists.
async fn reconcile(key: ObjectKey, cx: Context<ConfigMap>, progress: Arc<Progress>) -> Result<Action> {
    progress.first.get_or_init(Instant::now);
    if let Some(parent) = cx.get(&key)?
        && cx.lister::<Secret>()?.get(&key)?.is_none()
    {
        let data = Some(BTreeMap::from([("text".to_owned(), key.name().to_owned())]));
        let mut child = Secret { metadata: named(key.name()), string_data: data, ..Secret::default() };
        child.metadata.namespace = key.namespace().map(ToOwned::to_owned);
        cx.create(child.controlled_by(&*parent)?).await?;
        progress.created.fetch_add(1, Ordering::Relaxed);
    }
    progress.reconciles.fetch_add(1, Ordering::Relaxed);
    Ok(Action::done())
}

/// Looks every millisecond, as the peers do.
async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
