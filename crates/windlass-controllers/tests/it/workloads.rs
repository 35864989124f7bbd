//! ReplicaSets and Deployments.

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Event, Pod, ResourceQuota};
use kube_client::Client;
use kube_client::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube_core::ResourceExt;
use serde_json::{Value, json};
use windlass_test::{TestCluster, eventually};

use crate::support::{WAIT_LIMIT, api, becomes, create, delete, event};

fn workload(image: &str, replicas: i32) -> Value {
    json!({
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "c", "image": image}]},
            },
        },
    })
}

async fn images(client: &Client) -> Vec<String> {
    let pods: Api<Pod> = api(client);
    let pods = pods.list(&ListParams::default()).await.unwrap().items;
    let alive = pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
    alive.map(|pod| pod.spec.unwrap().containers[0].image.clone().unwrap()).collect()
}

async fn run(client: &Client, expected: &[&str]) {
    eventually(WAIT_LIMIT, || async {
        let found = images(client).await;
        if found == expected { Ok(()) } else { Err(format!("pods of {found:?}, not {expected:?}")) }
    })
    .await;
}

fn available(deployment: &Deployment, count: i32) -> bool {
    let status = deployment.status.clone().unwrap_or_default();
    status.observed_generation == deployment.metadata.generation
        && (
            status.replicas.unwrap_or(0),
            status.updated_replicas.unwrap_or(0),
            status.available_replicas.unwrap_or(0),
        ) == (count, count, count)
}

#[tokio::test]
async fn a_replica_set_keeps_its_number_of_pods() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<ReplicaSet>(&client, workload("one", 2)).await;
    becomes::<ReplicaSet>(&client, "web", |set| {
        set.status.as_ref().is_some_and(|s| s.ready_replicas == Some(2))
    })
    .await;
    let name = api::<Pod>(&client).list(&ListParams::default()).await.unwrap().items[0].name_any();
    delete::<Pod>(&client, &name, DeleteParams::default()).await;
    run(&client, &["one", "one"]).await;
    let none = Patch::Merge(json!({"spec": {"replicas": 0}}));
    api::<ReplicaSet>(&client).patch("web", &PatchParams::default(), &none).await.unwrap();
    run(&client, &[]).await;
}

#[tokio::test]
async fn a_pod_that_is_relabelled_is_let_go_and_replaced() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<ReplicaSet>(&client, workload("one", 1)).await;
    run(&client, &["one"]).await;
    let name = api::<Pod>(&client).list(&ListParams::default()).await.unwrap().items[0].name_any();
    let away = Patch::Merge(json!({"metadata": {"labels": {"app": "debug"}}}));
    api::<Pod>(&client).patch(&name, &PatchParams::default(), &away).await.unwrap();
    run(&client, &["one", "one"]).await;
    becomes::<Pod>(&client, &name, |pod| pod.owner_references().is_empty()).await;
    let back = Patch::Merge(json!({"metadata": {"labels": {"app": "web"}}}));
    api::<Pod>(&client).patch(&name, &PatchParams::default(), &back).await.unwrap();
    run(&client, &["one"]).await;
}

#[tokio::test]
async fn a_deployment_rolls_to_a_new_template_and_keeps_the_old_set() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<Deployment>(&client, workload("one", 3)).await;
    becomes::<Deployment>(&client, "web", |deployment| available(deployment, 3)).await;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "two"}]}}}});
    api::<Deployment>(&client).patch("web", &PatchParams::default(), &Patch::Merge(image)).await.unwrap();
    let rolled = becomes::<Deployment>(&client, "web", |deployment| available(deployment, 3)).await;
    run(&client, &["two", "two", "two"]).await;
    assert_eq!(rolled.annotations()["deployment.kubernetes.io/revision"], "2");
    assert_eq!(rolled.metadata.generation, Some(2), "what the controller writes is no new generation");
    let sets = api::<ReplicaSet>(&client).list(&ListParams::default()).await.unwrap().items;
    let mut sizes: Vec<i32> = sets.iter().map(|set| set.spec.as_ref().unwrap().replicas.unwrap()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [0, 3]);
    delete::<Deployment>(&client, "web", DeleteParams::background()).await;
    run(&client, &[]).await;
}

/// Creates a quota and waits until it counts.
async fn quota(client: &Client, hard: Value) {
    create::<ResourceQuota>(client, json!({"metadata": {"name": "none"}, "spec": {"hard": hard}})).await;
    becomes::<ResourceQuota>(client, "none", |quota| {
        quota.status.as_ref().is_some_and(|status| status.used.is_some())
    })
    .await;
}

fn has_condition(deployment: &Deployment, kind: &str, status: &str, reason: &str) -> bool {
    let mut conditions = deployment.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.any(|condition| {
        condition.type_ == kind && condition.status == status && condition.reason.as_deref() == Some(reason)
    })
}

#[tokio::test]
async fn a_deployment_reports_a_replica_set_that_cannot_be_created() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    quota(&client, json!({"count/replicasets.apps": "0"})).await;
    create::<Deployment>(&client, workload("one", 1)).await;
    let message = event(&client, "web", "ReplicaSetCreateError").await;
    assert!(message.starts_with("Failed to create new replica set \"web-"), "{message}");
    assert!(message.contains("exceeded quota: none"), "{message}");
    becomes::<Deployment>(&client, "web", |deployment| {
        has_condition(deployment, "Progressing", "False", "ReplicaSetCreateError")
    })
    .await;
    delete::<ResourceQuota>(&client, "none", DeleteParams::default()).await;
    becomes::<Deployment>(&client, "web", |deployment| available(deployment, 1)).await;
}

#[tokio::test]
async fn a_deployment_without_a_deadline_reports_a_replica_set_that_cannot_be_created_as_an_event_only() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    quota(&client, json!({"count/replicasets.apps": "0"})).await;
    let mut deployment = workload("one", 1);
    deployment["spec"]["progressDeadlineSeconds"] = i32::MAX.into();
    create::<Deployment>(&client, deployment).await;
    // The first attempt has ended when the second attempt reports.
    eventually(WAIT_LIMIT, || async {
        let events = api::<Event>(&client).list(&ListParams::default()).await.unwrap().items;
        let reports = events.iter().filter(|event| event.reason.as_deref() == Some("ReplicaSetCreateError"));
        let attempts: i32 = reports.map(|event| event.count.unwrap_or(1)).sum();
        if attempts > 1 { Ok(()) } else { Err(format!("{attempts} attempts")) }
    })
    .await;
    let deployment = api::<Deployment>(&client).get("web").await.unwrap();
    assert!(!has_condition(&deployment, "Progressing", "False", "ReplicaSetCreateError"), "{deployment:?}");
    assert_eq!(deployment.status.unwrap_or_default().conditions, None);
}

#[tokio::test]
async fn a_deployment_reports_pods_that_cannot_be_created() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    quota(&client, json!({"pods": "0"})).await;
    create::<Deployment>(&client, workload("one", 1)).await;
    becomes::<Deployment>(&client, "web", |deployment| {
        has_condition(deployment, "ReplicaFailure", "True", "FailedCreate")
    })
    .await;
    delete::<ResourceQuota>(&client, "none", DeleteParams::default()).await;
    becomes::<Deployment>(&client, "web", |deployment| {
        available(deployment, 1) && !has_condition(deployment, "ReplicaFailure", "True", "FailedCreate")
    })
    .await;
}

#[tokio::test]
async fn a_deployment_replaces_a_replica_set_whose_template_was_edited() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<Deployment>(&client, workload("one", 1)).await;
    becomes::<Deployment>(&client, "web", |deployment| available(deployment, 1)).await;
    let set = only_set(&client).await;
    let edit = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "edited"}]}}}});
    api::<ReplicaSet>(&client).patch(&set, &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
    becomes::<Deployment>(&client, "web", |deployment| {
        let collisions = deployment.status.as_ref().and_then(|status| status.collision_count);
        available(deployment, 1) && collisions == Some(1)
    })
    .await;
    run(&client, &["one"]).await;
}

async fn only_set(client: &Client) -> String {
    let sets = api::<ReplicaSet>(client).list(&ListParams::default()).await.unwrap().items;
    assert_eq!(sets.len(), 1, "one ReplicaSet");
    sets[0].name_any()
}

#[tokio::test]
async fn the_replica_set_of_a_deployment_gets_new_annotations_and_min_ready_seconds() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<Deployment>(&client, workload("one", 1)).await;
    becomes::<Deployment>(&client, "web", |deployment| available(deployment, 1)).await;
    let set = only_set(&client).await;
    let skipped = "deprecated.deployment.rollback.to";
    let annotations = json!({"kubernetes.io/change-cause": "a new image", skipped: "1"});
    let change = json!({"metadata": {"annotations": annotations}, "spec": {"minReadySeconds": 7}});
    api::<Deployment>(&client).patch("web", &PatchParams::default(), &Patch::Merge(change)).await.unwrap();
    let set = becomes::<ReplicaSet>(&client, &set, |set| {
        let cause = set.annotations().get("kubernetes.io/change-cause").map(String::as_str);
        cause == Some("a new image") && set.spec.as_ref().unwrap().min_ready_seconds == Some(7)
    })
    .await;
    assert!(!set.annotations().contains_key(skipped), "{:?}", set.annotations());
}

#[tokio::test]
async fn a_deployment_adopts_a_replica_set_that_matches() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<Deployment>(&client, workload("one", 1)).await;
    becomes::<Deployment>(&client, "web", |deployment| available(deployment, 1)).await;
    let mut orphan = workload("zero", 0);
    orphan["metadata"] = json!({"name": "orphan", "labels": {"app": "web"}});
    create::<ReplicaSet>(&client, orphan).await;
    becomes::<ReplicaSet>(&client, "orphan", |set| !set.owner_references().is_empty()).await;
}
