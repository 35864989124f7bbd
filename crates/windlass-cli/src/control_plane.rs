//! A control plane of this process: the API server over TLS, and the controllers that make it a cluster.

use std::path::Path;
use std::time::{Duration, Instant};

use kube::Client;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass_apiserver::{Identity, Listen, Listening, Server};
use windlass_controllers::Controllers;

use crate::error::Result;
use crate::kubeconfig_file;

/// A control plane that runs.
pub(crate) struct ControlPlane {
    server: Server,
    listening: Listening,
    controllers: Option<(oneshot::Sender<()>, JoinHandle<windlass_runtime::Result<()>>)>,
    took: Duration,
}

impl ControlPlane {
    /// Starts to serve at `port` of the loopback address; 0 is any free one.
    pub(crate) async fn start(port: u16) -> Result<Self> {
        let begun = Instant::now();
        let server = Server::builder().build()?;
        let listening = server.listen(Listen::port(port)).await?;
        Ok(Self { server, listening, controllers: None, took: begun.elapsed() })
    }

    /// Starts the controllers, in the background.
    pub(crate) fn start_controllers(&mut self) {
        let (stop, stopped) = oneshot::channel::<()>();
        let controllers =
            Controllers::new(self.client()).root_ca(self.listening.authority().certificate_pem());
        let running = tokio::spawn(controllers.run_until(async { drop(stopped.await) }));
        self.controllers = Some((stop, running));
    }

    /// Waits for the controllers to end by themselves, which they do not unless something is very wrong.
    pub(crate) async fn controllers_failed(&mut self) -> Result<()> {
        match &mut self.controllers {
            Some((_, running)) => Ok(running.await??),
            None => std::future::pending().await,
        }
    }

    /// A client inside the process, with an administrator's rights.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.server.service(Identity::admin()), "default")
    }

    pub(crate) fn url(&self) -> String {
        self.listening.url()
    }

    pub(crate) fn kubeconfig(&self) -> &str {
        self.listening.kubeconfig()
    }

    /// How long it took until it was ready to serve.
    pub(crate) fn took(&self) -> Duration {
        self.took
    }

    /// Writes the administrator's kubeconfig.
    pub(crate) fn write_kubeconfig(&self, path: &Path) -> Result<()> {
        Ok(kubeconfig_file::write(path, self.kubeconfig())?)
    }

    /// Stops the controllers, then the server.
    pub(crate) async fn stop(self) {
        if let Some((stop, running)) = self.controllers {
            drop(stop);
            match running.await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => tracing::warn!(%error, "the controllers did not stop well"),
                Err(error) => tracing::warn!(%error, "the controllers did not stop well"),
            }
        }
        self.listening.shutdown().await;
    }
}
