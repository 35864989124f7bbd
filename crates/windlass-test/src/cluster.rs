//! A control plane of a test's own.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Client;
use kube_client::api::Api;
use tokio::sync::{OnceCell, oneshot};
use windlass_apiserver::{Identity, Listen, Listening, Server};
use windlass_controllers::Controllers;

use crate::{eventually, install};

/// An API server in this process, with or without the controllers of a cluster.
///
/// It belongs to the runtime that made it; dropping it stops it. All methods panic where something fails, with the reason:
/// this is for tests.
pub struct TestCluster {
    server: Server,
    client: Client,
    listening: OnceCell<Listening>,
    /// Dropping it stops the controllers.
    _controllers: Option<oneshot::Sender<()>>,
}

impl TestCluster {
    /// The API server alone: what one writes stays as it is.
    #[expect(clippy::unused_async, reason = "it takes a runtime, and may come to wait for something")]
    pub async fn start() -> Self {
        Self::serve(|_| None)
    }

    /// The API server and the controllers of a cluster: owners collect, namespaces end, pods run on a simulated node.
    ///
    /// Returns when the node is ready and namespace `default` has its service account.
    pub async fn with_controllers() -> Self {
        let cluster = Self::serve(|client| Some(run_controllers(client)));
        cluster.wait_until_ready().await;
        cluster
    }

    fn serve(controllers: impl FnOnce(Client) -> Option<oneshot::Sender<()>>) -> Self {
        let server = Server::builder()
            .build()
            .unwrap_or_else(|error| panic!("the API server does not start: {error}"));
        let client = Client::new(server.service(Identity::admin()), "default");
        let controllers = controllers(client.clone());
        Self { server, client, listening: OnceCell::new(), _controllers: controllers }
    }

    async fn wait_until_ready(&self) {
        let nodes: Api<Node> = Api::all(self.client());
        let accounts: Api<ServiceAccount> = Api::default_namespaced(self.client());
        eventually(Duration::from_secs(30), || async {
            let found =
                nodes.list(&kube_client::api::ListParams::default()).await.map_err(|e| e.to_string())?;
            let conditions = found.items.into_iter().filter_map(|node| node.status?.conditions).flatten();
            if !conditions.into_iter().any(|c| c.type_ == "Ready" && c.status == "True") {
                return Err("no node is ready".to_owned());
            }
            accounts.get("default").await.map(drop).map_err(|error| error.to_string())
        })
        .await;
    }

    /// A client with the rights of an administrator; its namespace is `default`.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// A client of somebody else.
    pub fn client_of(&self, identity: Identity) -> Client {
        Client::new(self.server.service(identity), "default")
    }

    /// The server itself.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The server's way in over TLS, opened when first asked for, at a free port of the loopback address.
    pub async fn listening(&self) -> &Listening {
        self.listening
            .get_or_init(|| async {
                let listening = self.server.listen(Listen::default()).await;
                listening.unwrap_or_else(|error| panic!("the API server does not listen: {error}"))
            })
            .await
    }

    /// A kubeconfig for clients outside of this process, kubectl for one. It opens the way in over TLS.
    pub async fn kubeconfig(&self) -> String {
        self.listening().await.kubeconfig().to_owned()
    }

    /// Installs a CRD and waits until its resources are served.
    pub async fn install(&self, definition: &CustomResourceDefinition) {
        install::install(self.client(), definition).await;
    }
}

/// Runs the controllers in the background, until what this gives is dropped.
fn run_controllers(client: Client) -> oneshot::Sender<()> {
    let (stop, stopped) = oneshot::channel::<()>();
    tokio::spawn(async move {
        let stop = async { drop(stopped.await) };
        if let Err(error) = Controllers::new(client).run_until(stop).await {
            tracing::error!(%error, "the test cluster's controllers stopped");
        }
    });
    stop
}
