use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use pod_counter::{EcsBind, EcsBindSpec};
use serde_json::json;
use windlass_test::{TestCluster, eventually};

use crate::{SOON, cluster, create_pod, delete_pod, events, manager};

async fn create(client: &Client, name: &str, pod: &str) {
    bind(client, name, pod, &format!("i-{name}")).await;
}

async fn bind(client: &Client, name: &str, pod: &str, instance: &str) {
    let spec = EcsBindSpec { pod_name: pod.to_owned(), instance_id: instance.to_owned() };
    let binds: Api<EcsBind> = Api::default_namespaced(client.clone());
    binds.create(&PostParams::default(), &EcsBind::new(name, spec)).await.expect("created");
}

/// Waits until the condition of an `EcsBind` has a reason, and the status agrees with the condition.
async fn eventually_is(cluster: &TestCluster, name: &str, bound: bool, reason: &str) {
    let binds: Api<EcsBind> = Api::default_namespaced(cluster.client());
    eventually(SOON, || async {
        let status = binds.get(name).await.map_err(|e| e.to_string())?.status.unwrap_or_default();
        let reasons: Vec<_> = status.conditions.iter().map(|condition| condition.reason.as_str()).collect();
        if status.bound == bound && reasons == [reason] { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await;
}

#[tokio::test]
async fn an_instance_is_bound_while_its_pod_runs() {
    let cluster = cluster().await;
    let client = cluster.client();
    let operator = cluster.run_restricted(manager(client.clone())).await;
    create(&client, "a", "web").await;
    eventually_is(&cluster, "a", false, "PodNotFound").await;
    create_pod(&client, "web").await;
    eventually_is(&cluster, "a", true, "PodRunning").await;
    delete_pod(&client, "web").await;
    eventually_is(&cluster, "a", false, "PodNotFound").await;
    eventually(SOON, || async {
        let events = events(&client, "EcsBind", "a").await;
        let wanted = [
            "Bound instance i-a is bound to pod web (ecsbind-controller)",
            "NotBound there is no pod web (ecsbind-controller)",
        ];
        if wanted.iter().all(|line| events.iter().any(|event| event == line)) {
            Ok(())
        } else {
            Err(format!("{events:?}"))
        }
    })
    .await;
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_pod_binds_one_instance_and_the_next_one_when_that_goes() {
    let cluster = cluster().await;
    let client = cluster.client();
    let operator = cluster.run_restricted(manager(client.clone())).await;
    create_pod(&client, "web").await;
    create(&client, "a", "web").await;
    eventually_is(&cluster, "a", true, "PodRunning").await;
    create(&client, "b", "web").await;
    eventually_is(&cluster, "b", false, "PodTaken").await;
    let binds: Api<EcsBind> = Api::default_namespaced(client.clone());
    binds.delete("a", &DeleteParams::default()).await.expect("deleted");
    eventually_is(&cluster, "b", true, "PodRunning").await;
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn an_instance_is_bound_to_one_pod_and_to_the_next_one_when_that_is_let_go() {
    let cluster = cluster().await;
    let client = cluster.client();
    let operator = cluster.run_restricted(manager(client.clone())).await;
    for pod in ["web", "db"] {
        create_pod(&client, pod).await;
    }
    bind(&client, "a", "web", "i-1").await;
    eventually_is(&cluster, "a", true, "PodRunning").await;
    bind(&client, "b", "db", "i-1").await;
    eventually_is(&cluster, "b", false, "InstanceTaken").await;
    // An `EcsBind` without the pod does not block the instance.
    bind(&client, "c", "web", "i-2").await;
    eventually_is(&cluster, "c", false, "PodTaken").await;
    bind(&client, "d", "none", "i-2").await;
    eventually_is(&cluster, "d", false, "PodNotFound").await;

    let binds: Api<EcsBind> = Api::default_namespaced(client.clone());
    let other = Patch::Merge(json!({ "spec": { "instanceID": "i-3" } }));
    binds.patch("a", &PatchParams::default(), &other).await.expect("patched");
    eventually_is(&cluster, "b", true, "PodRunning").await;
    binds.delete("a", &DeleteParams::default()).await.expect("deleted");
    // Now `c` has the pod, and is older than `d`.
    eventually_is(&cluster, "c", true, "PodRunning").await;
    eventually_is(&cluster, "d", false, "InstanceTaken").await;
    operator.stop().await.expect("a graceful stop");
}

#[tokio::test]
async fn a_deleted_binding_that_others_hold_is_bound_no_more() {
    let cluster = cluster().await;
    let client = cluster.client();
    let operator = cluster.run_restricted(manager(client.clone())).await;
    create_pod(&client, "web").await;
    bind(&client, "a", "web", "i-1").await;
    eventually_is(&cluster, "a", true, "PodRunning").await;
    bind(&client, "b", "web", "i-1").await;
    eventually_is(&cluster, "b", false, "PodTaken").await;
    let binds: Api<EcsBind> = Api::default_namespaced(client.clone());
    let held =
        |finalizers: serde_json::Value| Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    binds.patch("a", &PatchParams::default(), &held(json!(["example.com/held"]))).await.expect("patched");
    binds.delete("a", &DeleteParams::default()).await.expect("deleted");
    eventually_is(&cluster, "a", false, "Deleted").await;
    eventually_is(&cluster, "b", true, "PodRunning").await;
    binds.patch("a", &PatchParams::default(), &held(json!(null))).await.expect("patched");
    operator.stop().await.expect("a graceful stop");
}
