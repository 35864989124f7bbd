//! The controller manager on a control plane in the test's process.

mod dev;
mod ecs_bind;
mod faults;
mod pod_count;

use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, PostParams},
};
use pod_counter::{EcsBind, ecs_bind_controller, pod_controller};
use serde_json::{Value, json};
use windlass::{leader_election::LeaderElection, prelude::*};
use windlass_test::TestCluster;

const SOON: Duration = Duration::from_secs(20);

/// Returns a cluster with a simulated control-plane node.
async fn cluster() -> TestCluster {
    let cluster = TestCluster::with_controllers().await;
    cluster.install_crd::<EcsBind>().await;
    cluster
}

/// Returns the controller manager, as in the program.
fn manager(client: Client) -> Manager {
    Manager::new(client).controller(pod_controller()).controller(ecs_bind_controller())
}

fn pod(name: &str, annotations: Value) -> Pod {
    let pod = json!({
        "metadata": { "name": name, "annotations": annotations },
        "spec": { "containers": [{ "name": "main", "image": "nginx" }] },
    });
    serde_json::from_value(pod).expect("a pod")
}

async fn create_pod(client: &Client, name: &str) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.create(&PostParams::default(), &pod(name, json!({}))).await.expect("created");
}

async fn delete_pod(client: &Client, name: &str) {
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    pods.delete(name, &DeleteParams::default().grace_period(0)).await.expect("deleted");
}

/// The Events about an object, as `Reason message (component)`, in order.
async fn events(client: &Client, kind: &str, name: &str) -> Vec<String> {
    let events: Api<Event> = Api::default_namespaced(client.clone());
    let about = format!("involvedObject.kind={kind},involvedObject.name={name}");
    let listed = events.list(&ListParams::default().fields(&about)).await.expect("listed");
    let line = |event: &Event| {
        let component = event.source.as_ref().and_then(|source| source.component.as_deref());
        let (reason, note) = (event.reason.as_deref(), event.message.as_deref());
        format!(
            "{} {} ({})",
            reason.unwrap_or_default(),
            note.unwrap_or_default(),
            component.unwrap_or_default()
        )
    };
    let mut lines: Vec<String> = listed.items.iter().map(line).collect();
    lines.sort();
    lines
}

/// The election of the replica that works.
fn election(identity: &str) -> LeaderElection {
    LeaderElection::new("pod-counter").identity(identity)
}

/// With the field manager `helm`, for instance, by a user of Helm.
#[tokio::test]
async fn the_controllers_take_no_field_from_their_user() {
    let cluster = cluster().await;
    cluster.check_ownership(manager(cluster.client()), include_str!("../../sample.yaml")).await;
}
