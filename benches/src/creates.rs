//! One reconcile that creates Secrets one after the other, on an API server in a process of its own: the path of a write through the client.
//! Under valgrind, the difference between two runs is the number of allocations of a create.

use crate::cell::Cell;
use crate::process;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube_client::api::{Api, ObjectMeta, PostParams};
use kube_client::{Config, config};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::mpsc;
use windlass_runtime::client::ClientBuilder;
use windlass_runtime::{Action, Context, Controller, Manager, Result};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Number of Secrets
    #[arg(long)]
    objects: usize,
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Watches the Secrets, so that reads see each create, and the watch shows each create
    #[arg(long)]
    watched: bool,
}

/// `rate` is creates per second; `processor_each` is the processor time of a create.
pub(crate) fn run(args: &Args) -> Cell {
    crate::runtime().block_on(async {
        let kubeconfig = config::Kubeconfig::read_from(&args.kubeconfig).expect("a kubeconfig");
        let config = Config::from_custom_kubeconfig(kubeconfig, &config::KubeConfigOptions::default()).await;
        let client = ClientBuilder::new(config.expect("a configuration")).build().expect("a client");
        let namespace = format!("creates-{}", std::process::id());
        let new = Namespace { metadata: named(&namespace), ..Namespace::default() };
        Api::all(client.clone()).create(&PostParams::default(), &new).await.expect("created");
        let (send, mut done) = mpsc::unbounded_channel();
        let objects = args.objects;
        let work = Arc::new((namespace.clone(), send));
        let controller = Controller::keyed("creates", move |_: u32, cx: Context<()>| {
            let work = work.clone();
            async move {
                let (began, before) = (Instant::now(), process::processor());
                for number in 0..objects {
                    create(&cx, &work.0, number).await?;
                }
                let _ = work.1.send((began.elapsed().as_secs_f64(), process::processor() - before));
                Ok::<_, windlass_runtime::Error>(Action::done())
            }
        });
        let controller = if args.watched { controller.reads::<Secret>() } else { controller };
        let handle = controller.handle();
        handle.enqueue(1);
        let manager = Manager::new(client).namespaces([namespace]).controller(controller);
        let ended = std::pin::pin!(manager.run_until(std::future::pending()));
        let (seconds, processor) = tokio::select! {
            biased;
            figures = done.recv() => figures.expect("the creates end"),
            ended = ended => panic!("the manager ended: {ended:?}"),
        };
        let objects = objects as f64;
        Cell::rate(objects / seconds).with("processor_each", processor / objects)
    })
}

async fn create(cx: &Context<()>, namespace: &str, number: usize) -> Result<()> {
    let data = Some(BTreeMap::from([("text".to_owned(), "x".to_owned())]));
    let mut secret =
        Secret { metadata: named(&format!("object-{number}")), string_data: data, ..Secret::default() };
    secret.metadata.namespace = Some(namespace.to_owned());
    cx.create(secret).await.map(drop)
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}
