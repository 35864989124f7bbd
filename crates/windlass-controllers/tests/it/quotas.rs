//! The quota controller, together with admission.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, ResourceQuota};
use kube_client::Client;
use kube_client::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};
use windlass_test::TestCluster;

use crate::support::{becomes, config, create, delete, pod};

/// Waits until the usage of the quota `q` is this.
async fn used(client: &Client, wanted: &Value) {
    becomes::<ResourceQuota>(client, "q", |quota| {
        let quota = serde_json::to_value(quota).unwrap();
        quota["status"]["used"] == *wanted && quota["status"]["hard"] == quota["spec"]["hard"]
    })
    .await;
}

#[tokio::test]
async fn what_was_there_is_counted_and_what_goes_is_given_back() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    config(&client, "before", &[]).await;
    let hard = json!({"count/configmaps": "3", "pods": "2", "count/pods": "5"});
    create::<ResourceQuota>(&client, json!({"metadata": {"name": "q"}, "spec": {"hard": hard}})).await;
    used(&client, &json!({"count/configmaps": "1", "pods": "0", "count/pods": "0"})).await;
    let mut short = pod("short", &json!({"kubelet.windlass.dev/run-for": "10ms"}));
    short["spec"]["terminationGracePeriodSeconds"] = json!(0);
    create::<Pod>(&client, short).await;
    config(&client, "after", &[]).await;
    // The pod has ended: it counts as an object only.
    used(&client, &json!({"count/configmaps": "2", "pods": "0", "count/pods": "1"})).await;
    delete::<ConfigMap>(&client, "before", DeleteParams::default()).await;
    delete::<Pod>(&client, "short", DeleteParams::default()).await;
    used(&client, &json!({"count/configmaps": "1", "pods": "0", "count/pods": "0"})).await;
    config(&client, "b", &[]).await;
    config(&client, "c", &[]).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let object: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "d"}})).unwrap();
    let refused = maps.create(&PostParams::default(), &object).await.unwrap_err().to_string();
    assert!(refused.contains("exceeded quota: q, requested: count/configmaps=1"), "{refused}");
}

#[tokio::test]
async fn a_raised_limit_is_enforced_at_once() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let quota = |limit: &str| json!({"metadata": {"name": "q"}, "spec": {"hard": {"secrets": limit}}});
    create::<ResourceQuota>(&client, quota("0")).await;
    used(&client, &json!({"secrets": "0"})).await;
    let quotas: Api<ResourceQuota> = Api::default_namespaced(client.clone());
    let raised: ResourceQuota = serde_json::from_value(quota("1")).unwrap();
    quotas.replace("q", &PostParams::default(), &raised).await.unwrap();
    used(&client, &json!({"secrets": "0"})).await;
    create::<k8s_openapi::api::core::v1::Secret>(&client, json!({"metadata": {"name": "s"}})).await;
    used(&client, &json!({"secrets": "1"})).await;
}
