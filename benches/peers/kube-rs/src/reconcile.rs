//! An operator of ConfigMaps. Each ConfigMap owns a Secret.

use crate::{Cell, number, process};
use futures::StreamExt;
use futures::channel::mpsc;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::{ObjectRef, Store, reflector, store};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource, ResourceExt};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

const NAMESPACE: &str = "bench";
const WORKERS: u16 = 16;
const ROUNDS: usize = 20;

struct Keeper {
    client: Client,
    secrets: Store<Secret>,
    first: OnceLock<Instant>,
    reconciles: AtomicU64,
    created: AtomicU64,
}

async fn reconcile(parent: Arc<ConfigMap>, keeper: Arc<Keeper>) -> Result<Action, kube::Error> {
    keeper.first.get_or_init(Instant::now);
    let name = parent.name_any();
    if keeper.secrets.get(&ObjectRef::new(&name).within(NAMESPACE)).is_none() {
        let owner = parent.controller_owner_ref(&()).expect("an object that was read");
        let child = Secret {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                owner_references: Some(vec![owner]),
                ..ObjectMeta::default()
            },
            string_data: Some(BTreeMap::from([("text".to_owned(), name)])),
            ..Secret::default()
        };
        let secrets: Api<Secret> = Api::namespaced(keeper.client.clone(), NAMESPACE);
        match secrets.create(&PostParams::default(), &child).await {
            Ok(_) => {
                keeper.created.fetch_add(1, Ordering::Relaxed);
            }
            // The store may lag behind the last reconcile of the key.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(error),
        }
    }
    keeper.reconciles.fetch_add(1, Ordering::Relaxed);
    Ok(Action::await_change())
}

pub async fn run(options: &BTreeMap<&str, &str>) -> Cell {
    let began = Instant::now();
    let objects = number(options, "objects") as u64;
    let file = kube::config::Kubeconfig::read_from(Path::new(options["kubeconfig"])).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(file, &Default::default()).await.expect("a configuration");
    let client = Client::try_from(config).expect("a client");
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    // The controller has a separate watch: a shared watch is an unstable feature.
    let (reader, writer) = store::store();
    let keeper = Arc::new(Keeper {
        client,
        secrets: reader,
        first: OnceLock::new(),
        reconciles: AtomicU64::new(0),
        created: AtomicU64::new(0),
    });
    let watch = reflector(writer, watcher(secrets.clone(), watcher::Config::default().streaming_lists()))
        .default_backoff()
        .touched_objects()
        .for_each(|_| futures::future::ready(()));
    tokio::spawn(watch);
    let (again, triggers) = mpsc::unbounded::<()>();
    let controller = Controller::new(maps, watcher::Config::default().streaming_lists())
        .owns(secrets, watcher::Config::default().streaming_lists())
        .reconcile_all_on(triggers)
        .with_config(Config::default().concurrency(WORKERS))
        .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(5)), Arc::clone(&keeper))
        .for_each(|_| futures::future::ready(()));
    tokio::spawn(controller);
    until(|| keeper.created.load(Ordering::Relaxed) >= objects).await;
    let (seconds, processor, peak) = (began.elapsed().as_secs_f64(), process::processor(), process::peak());

    let (before, round) = (process::processor(), Instant::now());
    for _ in 0..ROUNDS {
        let wanted = keeper.reconciles.load(Ordering::Relaxed) + objects;
        again.unbounded_send(()).expect("the controller is there");
        until(|| keeper.reconciles.load(Ordering::Relaxed) >= wanted).await;
    }
    let rounds = objects as f64 * ROUNDS as f64;
    let first = keeper.first.get().expect("a reconcile").duration_since(began).as_secs_f64();
    Cell::from([
        ("rate", objects as f64 / seconds),
        ("seconds", seconds),
        ("peak", peak),
        ("first", first),
        ("processor_each", processor / objects as f64),
        ("round_rate", rounds / round.elapsed().as_secs_f64()),
        ("round_processor_each", (process::processor() - before) / rounds),
    ])
}

/// Checks the condition every millisecond, like the other operators.
async fn until(done: impl Fn() -> bool) {
    while !done() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
