//! A control plane in this process: the API server over TLS, and the controllers of a cluster.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube_client::Client;
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::oneshot,
    task::JoinHandle,
    time::sleep,
};
use tracing::Dispatch;
use windlass_apiserver::{
    AdmissionPlugin, Identity, KubernetesVersion, Listen, RunningListener, Server, ServerBuilder,
};
use windlass_controllers::{Controllers, PodMode, RunningPods, SigningAuthority, can_run_pods};
use windlass_runtime::{Error, Result};

use crate::kubeconfig_file;
use crate::nodes::SimulatedNodes;
use crate::running_nodes::RunningNodes;

/// The limit for a node to be ready.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// How a control plane runs the programs of pods.
#[derive(Clone, Debug)]
pub struct PodRunner {
    /// The pods with programs.
    pub pods: RunningPods,
    /// The choice of the pods whose programs run. All other pods are simulated.
    pub mode: PodMode,
    /// Ports on the loopback address of this machine that pods reach at `host.windlass.internal`.
    pub host_ports: Vec<u16>,
}

/// Settings of a [`ControlPlane`], for [`ControlPlane::start_with`].
#[derive(Clone, Debug, Default)]
pub struct ControlPlaneOptions {
    /// The port of the loopback address. Default: 0, which chooses a free port.
    pub port: u16,
    /// The version of Kubernetes whose kinds the API server serves. Default: the newest version.
    pub version: KubernetesVersion,
    /// True for an API server without controllers: pods have no service accounts. Default: false.
    pub bare: bool,
    /// The first node runs the programs of pods with this runner. By default, all pods are simulated.
    pub runner: Option<PodRunner>,
}

/// A control plane in this process. All state is in memory. Dropping the value aborts the control plane;
/// [`stop`](Self::stop) shuts the control plane down gracefully.
pub struct ControlPlane {
    server: Server,
    listening: RunningListener,
    controllers: Option<(oneshot::Sender<()>, JoinHandle<Result<()>>)>,
    /// The threads of the controllers, if the controllers do not run on the caller's runtime.
    threads: Option<Threads>,
    /// Without a runner, all pods are simulated.
    runner: Option<PodRunner>,
    /// True if simulated pods wait for missing objects and for probes.
    strict: bool,
    simulated_nodes: Vec<Node>,
    /// `None` is the default of the controllers.
    node_grace_period: Option<Duration>,
    startup_time: Duration,
}

impl ControlPlane {
    /// Starts the API server on `port` of the loopback address. 0 chooses a free port.
    ///
    /// A controller creates the service accounts of pods: call [`start_controllers`](Self::start_controllers)
    /// next.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn start(port: u16) -> Result<Self> {
        Self::start_with(ControlPlaneOptions { port, ..ControlPlaneOptions::default() }).await
    }

    /// Works like [`start`](Self::start), with a node that runs the programs of pods.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn start_with_pods(port: u16, runner: PodRunner) -> Result<Self> {
        let runner = Some(runner);
        Self::start_with(ControlPlaneOptions { port, runner, ..ControlPlaneOptions::default() }).await
    }

    /// Works like [`start`](Self::start), for an API server without controllers: pods have no service
    /// accounts.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn start_bare(port: u16) -> Result<Self> {
        Self::start_with(ControlPlaneOptions { port, bare: true, ..ControlPlaneOptions::default() }).await
    }

    /// Starts the API server with these settings. Unless the control plane is bare, call
    /// [`start_controllers`](Self::start_controllers) next.
    ///
    /// # Errors
    /// The port is taken.
    pub async fn start_with(options: ControlPlaneOptions) -> Result<Self> {
        let begun = Instant::now();
        let server = options.builder().build().map_err(Error::other)?;
        let listening = server.listen(Listen::port(options.port)).await.map_err(Error::other)?;
        Ok(Self {
            server,
            listening,
            controllers: None,
            threads: None,
            runner: options.runner,
            strict: true,
            simulated_nodes: Vec::new(),
            node_grace_period: None,
            startup_time: begun.elapsed(),
        })
    }

    /// Sets whether simulated pods wait for missing ConfigMaps and Secrets, and for the delays of probes. The default is true. Call the
    /// method before [`start_controllers`](Self::start_controllers).
    pub fn set_strict(&mut self, strict: bool) {
        self.strict = strict;
    }

    /// Sets the simulated nodes beside the first node, see [`Controllers::simulated_nodes`]. Call the method before
    /// [`start_controllers`](Self::start_controllers).
    pub fn set_nodes(&mut self, nodes: Vec<Node>) {
        self.simulated_nodes = nodes;
    }

    /// Sets the time without a heartbeat after which a node counts as lost. Default: 50 s. Call the method before
    /// [`start_controllers`](Self::start_controllers).
    pub fn set_node_monitor_grace_period(&mut self, period: Duration) {
        self.node_grace_period = Some(period);
    }

    /// Starts the controllers of a cluster in the background, and the nodes. The nodes simulate pods; with
    /// a [`PodRunner`], the first node runs the programs of some pods.
    pub fn start_controllers(&mut self) {
        self.spawn_controllers(&Handle::current());
    }

    /// Works like [`start_controllers`](Self::start_controllers), on separate threads that log to `log`. The
    /// lines are then not mixed with the lines of an operator in the same process.
    ///
    /// # Errors
    /// The threads cannot be started.
    pub fn start_controllers_logging_to(&mut self, log: Dispatch) -> Result<()> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .thread_name("control-plane")
            // Kept until the thread ends.
            .on_thread_start(move || std::mem::forget(tracing::dispatcher::set_default(&log)))
            .build()
            .map_err(Error::other)?;
        self.spawn_controllers(runtime.handle());
        self.threads = Some(Threads(Some(runtime)));
        Ok(())
    }

    fn spawn_controllers(&mut self, runtime: &Handle) {
        // The client's tasks belong to the runtime that is entered when the client is made.
        let _entered = runtime.enter();
        let (stop, stopped) = oneshot::channel::<()>();
        let server = self.server.clone();
        let authority = self.listening.authority();
        let mut controllers = Controllers::new(self.client())
            .strict(self.strict)
            .root_ca(authority.certificate_pem())
            .sign_legacy_tokens(move |account, secret| {
                let ObjectMeta { namespace, name, uid, .. } = &account.metadata;
                server.legacy_token(namespace.as_deref()?, name.as_deref()?, uid.as_deref()?, secret)
            });
        match SigningAuthority::from_pem(authority.certificate_pem(), &authority.key_pem()) {
            Ok(authority) => controllers = controllers.sign_certificates(authority),
            Err(error) => tracing::warn!(%error, "no certificates are signed"),
        }
        controllers = controllers.simulated_nodes(self.simulated_nodes.clone());
        if let Some(period) = self.node_grace_period {
            controllers = controllers.node_monitor_grace_period(period);
        }
        if let Some(PodRunner { pods, mode, host_ports }) = self.runner.clone() {
            controllers = controllers.run_pods(pods, mode, host_ports);
        }
        let running = runtime.spawn(controllers.run_until(async { drop(stopped.await) }));
        self.controllers = Some((stop, running));
    }

    /// Waits until pods can run: a node is ready, and the namespace `default` has a service account.
    ///
    /// # Errors
    /// The wait takes longer than 30 s. The error names the missing object.
    pub async fn wait_until_ready(&self) -> Result<()> {
        let begun = Instant::now();
        while let Err(missing) = can_run_pods(&self.client(), 1).await {
            if begun.elapsed() >= READY_WITHIN {
                let message = format!("the control plane was not ready within {READY_WITHIN:?}: {missing}");
                return Err(Error::other(message));
            }
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Waits until the controllers fail. Never returns if they were not started.
    ///
    /// # Errors
    /// The error of the failed controller.
    pub async fn controllers_failed(&mut self) -> Result<()> {
        let Some((_, running)) = &mut self.controllers else { return std::future::pending().await };
        let ended = running.await;
        // A task that has ended must not be awaited again.
        self.controllers = None;
        ended.map_err(Error::other)?
    }

    /// Returns an in-process client with the rights of an administrator.
    pub fn client(&self) -> Client {
        Client::new(self.server.service(Identity::admin()), "default")
    }

    /// Returns the URL of the API server.
    pub fn url(&self) -> String {
        self.listening.url()
    }

    /// Returns the kubeconfig of the administrator, as YAML.
    pub fn kubeconfig(&self) -> &str {
        self.listening.kubeconfig()
    }

    /// Returns the time that the API server took to become ready.
    pub fn startup_time(&self) -> Duration {
        self.startup_time
    }

    /// Writes the kubeconfig of the administrator to a file, with mode 0600.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_kubeconfig(&self, path: &Path) -> Result<()> {
        kubeconfig_file::write(path, self.kubeconfig()).map_err(Error::other)
    }

    /// Stops the controllers, then the server.
    pub async fn stop(self) {
        if let Some((stop, running)) = self.controllers {
            drop(stop);
            match running.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the controllers failed to stop"),
                Err(error) => tracing::warn!(%error, "the controllers failed to stop"),
            }
        }
        self.listening.shutdown().await;
    }
}

impl ControlPlaneOptions {
    /// Returns the API server. Pods have service accounts unless the control plane is bare.
    fn builder(&self) -> ServerBuilder {
        let builder = Server::builder()
            .kubernetes_version(self.version)
            .admission_plugin(AdmissionPlugin::ServiceAccount, !self.bare);
        match &self.runner {
            Some(runner) => builder.nodes(RunningNodes::new(runner.pods.clone())),
            None => builder.nodes(SimulatedNodes),
        }
    }
}

/// A runtime that may be dropped inside of an asynchronous context.
struct Threads(Option<Runtime>);

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_control_plane_whose_controllers_failed_can_be_stopped() {
        let mut plane = ControlPlane::start(0).await.expect("a free port");
        let (stop, _stopped) = oneshot::channel();
        let failing = tokio::spawn(async { Err(Error::other("no scheduler")) });
        plane.controllers = Some((stop, failing));
        let error = plane.controllers_failed().await.expect_err("the controllers failed");
        assert!(error.to_string().contains("no scheduler"), "{error}");
        plane.stop().await;
    }
}
