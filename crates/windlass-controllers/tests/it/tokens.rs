//! Tokens in Secrets, and the owners of fields that controllers write.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use kube_client::api::{DeleteParams, ListParams};
use kube_core::ResourceExt;
use serde_json::{Value, json};
use windlass_test::TestCluster;

use crate::support::{becomes, create, delete, gone, phase, pod};

fn token_secret(name: &str, account: &str) -> Value {
    json!({
        "metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": account}},
        "type": "kubernetes.io/service-account-token",
    })
}

#[tokio::test]
async fn a_secret_gets_the_token_of_its_service_account_and_goes_with_it() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let account = json!({"metadata": {"name": "bot"}, "secrets": [{"name": "t"}, {"name": "other"}]});
    let account: ServiceAccount = create(&client, account).await;
    create::<Secret>(&client, token_secret("t", "bot")).await;
    create::<Secret>(&client, token_secret("stranger", "nobody")).await;
    let filled = becomes::<Secret>(&client, "t", |secret| {
        secret.data.as_ref().is_some_and(|data| data.contains_key("token"))
    })
    .await;
    assert_eq!(filled.data.unwrap()["namespace"].0, b"default");
    assert_eq!(
        filled.metadata.annotations.unwrap()["kubernetes.io/service-account.uid"],
        account.uid().unwrap()
    );
    gone::<Secret>(&client, "stranger").await;
    delete::<Secret>(&client, "t", DeleteParams::default()).await;
    becomes::<ServiceAccount>(&client, "bot", |account| {
        account.secrets.iter().flatten().all(|secret| secret.name.as_deref() != Some("t"))
    })
    .await;
    create::<Secret>(&client, token_secret("again", "bot")).await;
    becomes::<Secret>(&client, "again", |secret| secret.data.is_some()).await;
    delete::<ServiceAccount>(&client, "bot", DeleteParams::default()).await;
    gone::<Secret>(&client, "again").await;
}

#[tokio::test]
async fn the_components_of_a_cluster_own_what_they_write() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let template = pod("t", &json!({}));
    let deployment = json!({
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": "d"}},
            "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": template["spec"]["containers"]}}
        }
    });
    create::<Deployment>(&client, deployment).await;
    becomes::<Deployment>(&client, "d", |deployment| {
        deployment.status.as_ref().is_some_and(|status| status.ready_replicas == Some(1))
    })
    .await;
    create::<Pod>(&client, pod("p", &json!({}))).await;
    let own = becomes::<Pod>(&client, "p", |pod| phase(pod) == "Running").await;
    let managers = |object: &Value| -> Vec<String> {
        let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
        let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
        let mut seen: Vec<String> = entries
            .iter()
            .map(|entry| format!("{} {}", text(entry, "manager"), text(entry, "subresource")))
            .collect();
        seen.sort();
        seen
    };
    let own = managers(&serde_json::to_value(&own).unwrap());
    assert_eq!(own, ["kubelet status", "unknown "], "{own:?}");
    let deployment = becomes::<Deployment>(&client, "d", |_| true).await;
    let seen = managers(&serde_json::to_value(&deployment).unwrap());
    assert!(seen.contains(&"kube-controller-manager status".to_owned()), "{seen:?}");
    let known = ["kube-controller-manager", "kube-scheduler", "kubelet", "kube-apiserver", "unknown"];
    for (kind, path) in [
        ("pods", "/api/v1/pods"),
        ("replicasets", "/apis/apps/v1/replicasets"),
        ("nodes", "/api/v1/nodes"),
        ("namespaces", "/api/v1/namespaces"),
        ("serviceaccounts", "/api/v1/serviceaccounts"),
        ("leases", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"),
    ] {
        let request = kube_core::Request::new(path).list(&ListParams::default()).unwrap();
        let list: Value = client.request(request).await.unwrap();
        for object in list["items"].as_array().unwrap() {
            for manager in managers(object) {
                let name = manager.split(' ').next().unwrap();
                assert!(known.contains(&name), "{kind} {}: {manager}", object["metadata"]["name"]);
            }
        }
    }
}
