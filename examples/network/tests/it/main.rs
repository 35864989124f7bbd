//! The operator on an API server in the test's process, with a stand-in of Neutron.

mod controller;
mod crd;
mod dev;
mod faults;
mod keystone;
mod neutron;
mod queue_metrics;
mod replicas;

use std::time::Duration;

use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
};
use network::{
    Options,
    apis::samplecrd::v1::{Network, NetworkSpec},
    neutron::{Neutron, NeutronConfig, stand_in::StandIn},
    runnable,
};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use windlass::prelude::*;
use windlass_test::{RestrictedManager, TestCluster, eventually};

const SOON: Duration = Duration::from_secs(30);

/// The description of the operator's networks in Neutron.
const OWNED: (&str, &str) = ("description", "samplecrd.k8s.io networks of kubernetes");

/// A cluster with the CRD, a stand-in of Neutron, and a client of the stand-in. With
/// `WINDLASS_TEST_KUBECONFIG`, all tests use that cluster, in sequence (`--test-threads=1`).
struct Fixture {
    cluster: TestCluster,
    stand_in: StandIn,
    neutron: Neutron,
}

impl Fixture {
    async fn new() -> Self {
        let cluster = cluster().await;
        cluster.install_crd::<Network>().await;
        remove_all(&objects(&cluster.client())).await;
        let stand_in = StandIn::start().await.expect("a port");
        let neutron = Neutron::new(NeutronConfig::noauth(stand_in.url())).expect("a client");
        Self { cluster, stand_in, neutron }
    }

    /// Returns the operator's manager, which compares with Neutron every 200 ms.
    fn manager(&self) -> Manager {
        self.manager_with_resync(Duration::from_millis(200))
    }

    fn manager_with_resync(&self, resync: Duration) -> Manager {
        let timeout = Duration::from_secs(2);
        let neutron = Some(NeutronConfig { timeout, ..NeutronConfig::noauth(self.stand_in.url()) });
        let options = Options { neutron, resync, ..Options::default() };
        Manager::new(self.cluster.client()).runnable(runnable(options))
    }

    async fn run(&self) -> RestrictedManager {
        self.cluster.run_restricted(self.manager()).await
    }

    async fn run_with_resync(&self, resync: Duration) -> RestrictedManager {
        self.cluster.run_restricted(self.manager_with_resync(resync)).await
    }

    fn objects(&self) -> Api<Network> {
        objects(&self.cluster.client())
    }

    async fn create(&self, name: &str, cidr: &str, gateway: &str) {
        let object = network(name, cidr, gateway);
        self.objects().create(&PostParams::default(), &object).await.expect("created");
    }

    async fn patch(&self, name: &str, spec: serde_json::Value) {
        let patch = Patch::Merge(json!({ "spec": spec }));
        self.objects().patch(name, &PatchParams::default(), &patch).await.expect("patched");
    }

    async fn delete(&self, name: &str) {
        self.objects().delete(name, &DeleteParams::default()).await.expect("deleted");
    }

    /// Waits until the condition `Ready` of an object has this reason. Returns the message of the condition.
    async fn reason(&self, name: &str, reason: &str) -> String {
        let found = self.cluster.wait_for::<Network>(name, |object| ready(object).0 == reason).await;
        ready(&found).1
    }

    /// The networks in Neutron as `name cidr gateway`, sorted.
    async fn actual(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for network in self.neutron.networks(&[OWNED]).await.expect("listed") {
            let subnets = self.neutron.subnets(&[("network_id", &network.id)]).await.expect("listed");
            let subnets = subnets.iter().map(|subnet| {
                format!(
                    " {} {}",
                    subnet.cidr,
                    subnet.gateway_ip.map_or_else(String::new, |ip| ip.to_string())
                )
            });
            lines.push(network.name + &subnets.collect::<String>());
        }
        lines.sort();
        lines
    }

    /// Waits until Neutron has exactly these networks.
    async fn settled(&self, wanted: &[&str]) {
        eventually(SOON, || async {
            let actual = self.actual().await;
            if actual == wanted { Ok(()) } else { Err(format!("{actual:?}")) }
        })
        .await;
    }
}

async fn cluster() -> TestCluster {
    match std::env::var_os("WINDLASS_TEST_KUBECONFIG") {
        Some(_) => TestCluster::from_env().await.wait_limit(SOON * 2),
        None => TestCluster::start().await,
    }
}

/// Removes the networks of an earlier test.
async fn remove_all(networks: &Api<Network>) {
    for network in networks.list(&ListParams::default()).await.expect("listed") {
        let name = network.name_any();
        let released = Patch::Merge(json!({ "metadata": { "finalizers": null } }));
        networks.patch(&name, &PatchParams::default(), &released).await.expect("patched");
        // Without a finalizer, a terminating object is gone.
        networks.delete(&name, &DeleteParams::default()).await.map(drop).or_else(gone).expect("deleted");
    }
}

fn gone(error: kube::Error) -> kube::Result<()> {
    match error {
        kube::Error::Api(status) if status.code == 404 => Ok(()),
        other => Err(other),
    }
}

fn objects(client: &Client) -> Api<Network> {
    Api::default_namespaced(client.clone())
}

fn network(name: &str, cidr: &str, gateway: &str) -> Network {
    Network::new(name, NetworkSpec { cidr: cidr.to_owned(), gateway: gateway.to_owned() })
}

/// The reason and the message of the condition.
fn ready(object: &Network) -> (String, String) {
    let conditions = object.status.iter().flat_map(|status| &status.conditions);
    let ready = conditions.into_iter().find(|condition| condition.type_ == "Ready");
    ready.map(|ready| (ready.reason.clone(), ready.message.clone())).unwrap_or_default()
}

/// Sends a request that the operator never sends.
async fn put(url: &str, body: serde_json::Value) {
    let (host, path) = url.trim_start_matches("http://").split_once('/').expect("a path");
    let mut stream = tokio::net::TcpStream::connect(host).await.expect("connected");
    let body = body.to_string();
    let request = format!(
        "PUT /{path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.expect("a reply");
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}
