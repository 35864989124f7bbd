//! A control plane in this process: the API server over TLS, and the controllers of a cluster.

use std::path::Path;
use std::time::{Duration, Instant};

use kube::Client;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use windlass_apiserver::{Identity, Listen, Listening, Server};
use windlass_controllers::Controllers;

use crate::error::Result;
use crate::kubeconfig_file;

/// A running control plane.
pub(crate) struct ControlPlane {
    server: Server,
    listening: Listening,
    controllers: Option<(oneshot::Sender<()>, JoinHandle<windlass_runtime::Result<()>>)>,
    startup_time: Duration,
}

impl ControlPlane {
    /// Starts the API server on `port` of the loopback address. 0 chooses a free one.
    pub(crate) async fn start(port: u16) -> Result<Self> {
        let begun = Instant::now();
        let server = Server::builder().build()?;
        let listening = server.listen(Listen::port(port)).await?;
        Ok(Self { server, listening, controllers: None, startup_time: begun.elapsed() })
    }

    /// Starts the controllers in the background.
    pub(crate) fn start_controllers(&mut self) {
        let (stop, stopped) = oneshot::channel::<()>();
        let controllers =
            Controllers::new(self.client()).root_ca(self.listening.authority().certificate_pem());
        let running = tokio::spawn(controllers.run_until(async { drop(stopped.await) }));
        self.controllers = Some((stop, running));
    }

    /// Waits until the controllers fail. Never returns if they were not started.
    pub(crate) async fn controllers_failed(&mut self) -> Result<()> {
        match &mut self.controllers {
            Some((_, running)) => Ok(running.await??),
            None => std::future::pending().await,
        }
    }

    /// Returns an in-process client with the rights of an administrator.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.server.service(Identity::admin()), "default")
    }

    pub(crate) fn url(&self) -> String {
        self.listening.url()
    }

    pub(crate) fn kubeconfig(&self) -> &str {
        self.listening.kubeconfig()
    }

    /// Returns how long it took until the API server was ready.
    pub(crate) fn startup_time(&self) -> Duration {
        self.startup_time
    }

    /// Writes the kubeconfig of the administrator to a file.
    pub(crate) fn write_kubeconfig(&self, path: &Path) -> Result<()> {
        Ok(kubeconfig_file::write(path, self.kubeconfig())?)
    }

    /// Stops the controllers, then the server.
    pub(crate) async fn stop(self) {
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
