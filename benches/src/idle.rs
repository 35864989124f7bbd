//! An idle manager of twenty controllers.

use crate::cell::Cell;
use crate::process;
use kube_core::{ApiResource, DynamicObject, GroupVersionKind};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::oneshot;
use windlass_runtime::client::ConfigSource;
use windlass_runtime::leader_election::LeaderElection;
use windlass_runtime::{Action, Context, Controller, Error, Manager};

/// The kinds, with a kind for each controller.
const KINDS: [(&str, &str, &str); 20] = [
    ("", "v1", "ConfigMap"),
    ("", "v1", "Endpoints"),
    ("", "v1", "LimitRange"),
    ("", "v1", "Namespace"),
    ("", "v1", "Node"),
    ("", "v1", "PersistentVolume"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "Pod"),
    ("", "v1", "ResourceQuota"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "StatefulSet"),
    ("batch", "v1", "CronJob"),
    ("batch", "v1", "Job"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("policy", "v1", "PodDisruptionBudget"),
];
const REST: Duration = Duration::from_secs(5);
const MEASURED: Duration = Duration::from_secs(20);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    kubeconfig: PathBuf,
    /// The processes of the server
    #[arg(long, value_delimiter = ',', hide = true)]
    processes: Vec<u32>,
}

/// `idle` is the part of a core that an idle leader takes. The leader renews the Lease every 2 s.
pub(crate) fn run(args: &Args) -> Cell {
    let source = ConfigSource { kubeconfig: Some(args.kubeconfig.clone()), ..ConfigSource::default() };
    crate::runtime().block_on(async {
        let mut manager =
            Manager::from_config(source).leader_election(LeaderElection::new("bench").namespace("default"));
        for (group, version, kind) in KINDS {
            let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
            let reconcile = |_, _: Context<DynamicObject>| async { Ok::<_, Error>(Action::done()) };
            manager = manager.controller(Controller::of_kind(resource, reconcile));
        }
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(manager.run_until(async {
            let _ = stopped.await;
        }));
        tokio::time::sleep(REST).await;
        let before = process::processor();
        tokio::time::sleep(MEASURED).await;
        let idle = (process::processor() - before) / MEASURED.as_secs_f64();
        let _ = stop.send(());
        task.await.expect("no panic").expect("a graceful end");
        Cell::default().with("idle", idle).with("resident", process::resident() as f64)
    })
}
