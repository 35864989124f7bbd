//! `windlass cluster`

use std::path::PathBuf;
use std::{io, thread};

use clap::{ArgAction, Args};
use tokio::sync::oneshot;
use windlass_dev::{ControlPlane, ControlPlaneOptions, KubernetesVersion, shell_word};

use crate::error::Result;
use crate::node::{NodeArgs, SimulatedNodeArgs};
use crate::open_files;
use crate::output::Output;
use crate::project::{local_kubeconfig, warn_of_replaced};
use crate::signals::ShutdownSignal;

/// Run a control plane in the foreground, until Ctrl-C.
///
/// The control plane consists of an API server on the loopback address, the controllers of a cluster, and a
/// node, all in this process. The node runs the programs of pods whose images are on this machine, and
/// simulates all other pods. When ready, the command writes a kubeconfig and prints the path.
///
/// All state is in memory and is lost at the end. Each start creates a new certificate authority and new
/// credentials, and clients of an earlier start have to read the kubeconfig again.
#[derive(Args)]
#[command(after_help = "\
Examples:
  windlass cluster
  kubectl --kubeconfig .windlass/kubeconfig create deployment web --image nginx --replicas 3

  windlass cluster --port 6443 --kubeconfig /tmp/kubeconfig
  KUBECONFIG=/tmp/kubeconfig cargo run        # your operator

  windlass cluster --nodes 3 --zones a,b      # three nodes in two zones

  windlass cluster --until-stdin-closes       # started by a test suite, which holds the other end of the pipe

Controllers run for the workloads (Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs, ReplicationControllers), endpoints,
disruption budgets, autoscalers, quotas, namespaces, service accounts, nodes, scheduling and garbage collection.

The programs of a pod run if its images are in the local store (windlass image) or in a registry on a loopback address: the containerID
is process://... All other pods are simulated: no image is pulled and no process runs, and the Event Simulated says why.
  kubelet.windlass.dev/run: process         run its programs, whatever --pods local finds; or simulate it

With --runtime cri, programs run in the containers of a container runtime, as on a real node: the containerID is containerd://... Needs root,
and a windlass that was built with the feature `cri`.

Annotations of a simulated pod set what it does:
  kubelet.windlass.dev/start-after: 2s      time until its image is there
  kubelet.windlass.dev/ready-after: 1s      time from its start until it is ready, in the place of its probes
  kubelet.windlass.dev/ready: \"false\"      it is not ready, until the annotation changes
  kubelet.windlass.dev/run-for: 5s          time from its start until it ends by itself, or forever; without it, as long as a plain
                                            command says (sleep 5), else 1s if its restartPolicy is OnFailure or Never, else forever
  kubelet.windlass.dev/exit-code: \"1\"       its exit code
  kubelet.windlass.dev/stop-after: 3s       time from its deletion until it stops
  kubelet.windlass.dev/image-pull: fail     its image cannot be pulled
  kubelet.windlass.dev/strict: \"false\"     as --strict=false, for the pod or the namespace
  kubelet.windlass.dev/log: \"text\"          what `kubectl logs` prints
Append .CONTAINER to a key for one container only.

Annotations of a Node:
  kubelet.windlass.dev/run: simulate        a Node object that is created while the cluster runs becomes a simulated node
  kubelet.windlass.dev/node-state: stopped  no heartbeats, and pods neither start nor end; or not-ready

Logs go to stderr: warnings and errors only, unless -v or RUST_LOG asks for more.")]
pub(crate) struct Cluster {
    /// Listen on this port of 127.0.0.1. 0 chooses a free port.
    #[arg(long, default_value_t = 0)]
    port: u16,

    /// Serve the groups, kinds and fields of this version of Kubernetes: 1.37 or 1.36. The checks of objects are those of the newest
    /// version.
    #[arg(long, value_name = "VERSION", default_value_t)]
    version: KubernetesVersion,

    /// Write the kubeconfig to this file, with mode 0600, because the kubeconfig has the rights of an
    /// administrator. Default: .windlass/kubeconfig in the folder of the project, or outside of a project in the current folder.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// Run the API server without controllers: pods are not scheduled or run, service accounts are not
    /// created, and garbage is not collected.
    #[arg(long)]
    bare: bool,

    /// Stop when standard input closes, too. A parent process that holds the other end of a pipe thereby ends
    /// the control plane with the parent's end, even after kill -9.
    #[arg(long)]
    until_stdin_closes: bool,

    /// Let simulated pods wait for missing ConfigMaps and Secrets, and for the delays of probes. --strict=false lets every simulated
    /// pod run at once.
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = ArgAction::Set
    )]
    strict: bool,

    #[command(flatten)]
    node: NodeArgs,

    #[command(flatten)]
    nodes: SimulatedNodeArgs,
}

impl Cluster {
    pub(crate) async fn run(self, out: &mut Output) -> Result<()> {
        let shutdown = ShutdownSignal::listen()?;
        open_files::raise_limit();
        let kubeconfig = self.kubeconfig.map_or_else(local_kubeconfig, Ok)?;
        let simulated = self.nodes.nodes()?;
        let node = if self.bare { None } else { self.node.start(out).await? };
        let mut plane = ControlPlane::start_with(ControlPlaneOptions {
            port: self.port,
            version: self.version,
            bare: self.bare,
            runner: node.as_ref().map(|node| node.runner.clone()),
        })
        .await?;
        plane.set_strict(self.strict);
        plane.set_nodes(simulated);
        plane.set_node_monitor_grace_period(self.nodes.grace_period());
        warn_of_replaced(&kubeconfig, &kubeconfig, out);
        plane.write_kubeconfig(&kubeconfig)?;
        out.line(format_args!("ready in {} ms at {}", plane.startup_time().as_millis(), plane.url()));
        out.line(format_args!("kubeconfig: {}", kubeconfig.display()));
        out.line("");
        out.line(format_args!("  kubectl --kubeconfig {} get namespaces", shell_word(&kubeconfig)));
        out.line("");
        out.line("All state is in memory and is lost at the end. Logs go to stderr (more with -v). Ctrl-C stops it.");
        if !self.bare {
            plane.start_controllers();
        }
        let result = tokio::select! {
            biased;
            () = shutdown.received() => Ok(()),
            () = stdin_closed(), if self.until_stdin_closes => {
                out.line("standard input is closed: stopping");
                Ok(())
            }
            failed = plane.controllers_failed() => failed.map_err(Into::into),
        };
        plane.stop().await;
        if let Some(node) = node {
            node.stop(out).await;
        }
        result
    }
}

/// Reads standard input to the end, or to an error, and drops the bytes.
///
/// The read runs on a detached thread, because a blocking task of the runtime would delay the exit of the process.
async fn stdin_closed() {
    let (sender, closed) = oneshot::channel::<()>();
    thread::spawn(move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        drop(sender);
    });
    let _ = closed.await;
}
