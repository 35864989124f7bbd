//! Claims, volumes, and pods that wait for volumes.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;
use kube_client::Client;
use kube_client::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube_core::ResourceExt;
use serde_json::{Value, json};
use windlass_test::{TestCluster, eventually};

use crate::support::{
    WAIT_LIMIT, api, becomes, cluster_with, create, delete, event, gone, node, node_of, phase, pod,
    schedule_message,
};

fn claim(name: &str, change: Value) -> Value {
    let mut spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    if let (Some(fields), Value::Object(change)) = (spec.as_object_mut(), change) {
        fields.extend(change);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

fn using(name: &str, claim: &str) -> Value {
    let mut pod = pod(name, &json!({}));
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    pod
}

fn claim_phase(claim: &PersistentVolumeClaim) -> &str {
    claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

fn volume_of(claim: &PersistentVolumeClaim) -> String {
    claim.spec.as_ref().and_then(|spec| spec.volume_name.clone()).unwrap_or_default()
}

async fn volume_becomes(client: &Client, name: &str, phase: &str) -> PersistentVolume {
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    eventually(WAIT_LIMIT, || async {
        let volume = volumes.get(name).await.map_err(|error| error.to_string())?;
        let shown = volume.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
        if shown == phase { Ok(volume) } else { Err(format!("{name} is {shown}")) }
    })
    .await
}

#[tokio::test]
async fn a_stateful_set_with_volumes_runs() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let labels = json!({"app": "db"});
    let containers =
        json!([{"name": "c", "image": "db", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}]);
    create::<StatefulSet>(
        &client,
        json!({
            "metadata": {"name": "db"},
            "spec": {
                "replicas": 2, "serviceName": "db", "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
                "volumeClaimTemplates": [claim("data", json!({}))],
            },
        }),
    )
    .await;
    let mut volumes = Vec::new();
    for name in ["db-0", "db-1"] {
        becomes::<Pod>(&client, name, |pod| phase(pod) == "Running").await;
        let claim_name = format!("data-{name}");
        let claim =
            becomes::<PersistentVolumeClaim>(&client, &claim_name, |c| claim_phase(c) == "Bound").await;
        assert_eq!(claim.spec.as_ref().unwrap().storage_class_name.as_deref(), Some("standard"));
        assert_eq!(claim.status.as_ref().unwrap().capacity.as_ref().unwrap()["storage"].0, "1Gi");
        volumes.push(volume_of(&claim));
        let message = event(&client, &claim_name, "ProvisioningSucceeded").await;
        assert_eq!(message, format!("Successfully provisioned volume {}", volume_of(&claim)));
    }
    for name in &volumes {
        volume_becomes(&client, name, "Bound").await;
    }
    delete::<StatefulSet>(&client, "db", DeleteParams::default()).await;
    gone::<Pod>(&client, "db-0").await;
    delete::<PersistentVolumeClaim>(&client, "data-db-0", DeleteParams::default()).await;
    let all: Api<PersistentVolume> = Api::all(client.clone());
    eventually(WAIT_LIMIT, || async {
        match all.get_opt(&volumes[0]).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    volume_becomes(&client, &volumes[1], "Bound").await;
}

#[tokio::test]
async fn a_claim_waits_for_the_first_pod() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<PersistentVolumeClaim>(&client, claim("lazy", json!({}))).await;
    assert_eq!(
        event(&client, "lazy", "WaitForFirstConsumer").await,
        "waiting for first consumer to be created before binding"
    );
    create::<Pod>(&client, using("p", "lazy")).await;
    becomes::<Pod>(&client, "p", |pod| phase(pod) == "Running").await;
    becomes::<PersistentVolumeClaim>(&client, "lazy", |claim| claim_phase(claim) == "Bound").await;
}

#[tokio::test]
async fn a_pod_waits_for_a_claim_whose_class_is_missing() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<PersistentVolumeClaim>(&client, claim("data", json!({"storageClassName": "fast"}))).await;
    create::<Pod>(&client, using("p", "data")).await;
    create::<Pod>(&client, using("lost", "absent")).await;
    assert_eq!(
        event(&client, "data", "ProvisioningFailed").await,
        "storageclass.storage.k8s.io \"fast\" not found"
    );
    let waiting = becomes::<Pod>(&client, "p", |pod| !schedule_message(pod).is_empty()).await;
    let unbound = "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found";
    assert_eq!(schedule_message(&waiting), unbound);
    assert_eq!(event(&client, "p", "FailedScheduling").await, schedule_message(&waiting));
    let waiting = becomes::<Pod>(&client, "lost", |pod| !schedule_message(pod).is_empty()).await;
    let absent = "0/1 nodes are available: persistentvolumeclaim \"absent\" not found. not found";
    assert_eq!(schedule_message(&waiting), absent);
    let classes: Api<StorageClass> = Api::all(client.clone());
    let class = json!({
        "metadata": {"name": "fast"}, "provisioner": "windlass.dev/simulated", "volumeBindingMode": "Immediate",
    });
    classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
    becomes::<Pod>(&client, "p", |pod| phase(pod) == "Running").await;
    create::<PersistentVolumeClaim>(&client, claim("absent", json!({}))).await;
    becomes::<Pod>(&client, "lost", |pod| phase(pod) == "Running").await;
}

#[tokio::test]
async fn a_volume_of_an_administrator_is_bound_and_kept() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    for (name, size) in [("large", "10Gi"), ("small", "2Gi")] {
        let spec = json!({
            "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"},
            "storageClassName": "manual",
        });
        let volume = json!({"metadata": {"name": name}, "spec": spec});
        volumes.create(&PostParams::default(), &serde_json::from_value(volume).unwrap()).await.unwrap();
        volume_becomes(&client, name, "Available").await;
    }
    create::<PersistentVolumeClaim>(&client, claim("data", json!({"storageClassName": "manual"}))).await;
    let bound =
        becomes::<PersistentVolumeClaim>(&client, "data", |claim| claim_phase(claim) == "Bound").await;
    assert_eq!(volume_of(&bound), "small");
    assert_eq!(bound.status.unwrap().capacity.unwrap()["storage"].0, "2Gi");
    let annotations = bound.metadata.annotations.unwrap();
    for key in ["pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller"] {
        assert_eq!(annotations[key], "yes");
    }
    delete::<PersistentVolumeClaim>(&client, "data", DeleteParams::default()).await;
    let released = volume_becomes(&client, "small", "Released").await;
    assert!(released.metadata.deletion_timestamp.is_none());
    create::<PersistentVolumeClaim>(&client, claim("lost", json!({"storageClassName": "manual"}))).await;
    becomes::<PersistentVolumeClaim>(&client, "lost", |claim| claim_phase(claim) == "Bound").await;
    let unprotected = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    volumes.delete("large", &DeleteParams::default()).await.unwrap();
    volumes.patch("large", &PatchParams::default(), &unprotected).await.unwrap();
    becomes::<PersistentVolumeClaim>(&client, "lost", |claim| claim_phase(claim) == "Lost").await;
    assert_eq!(
        event(&client, "lost", "ClaimLost").await,
        "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    );
}

#[tokio::test]
async fn a_volume_keeps_its_pods_in_its_zone() {
    const ZONE: &str = "topology.kubernetes.io/zone";
    let zone = |name: &str, zone: &str| node(name, json!({ZONE: zone}), json!({}));
    let (cluster, _running) = cluster_with(vec![zone("windlass", "a"), zone("b", "b")]).await;
    let client = cluster.client();
    create::<PersistentVolumeClaim>(&client, claim("data", json!({}))).await;
    let mut first = using("first", "data");
    first["spec"]["nodeSelector"] = json!({ZONE: "b"});
    create::<Pod>(&client, first).await;
    becomes::<Pod>(&client, "first", |pod| phase(pod) == "Running").await;
    create::<Pod>(&client, using("second", "data")).await;
    let second = becomes::<Pod>(&client, "second", |pod| phase(pod) == "Running").await;
    assert_eq!(node_of(&second), "b");
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.cordon("b").await.unwrap();
    create::<Pod>(&client, using("third", "data")).await;
    let third = becomes::<Pod>(&client, "third", |pod| !schedule_message(pod).is_empty()).await;
    assert!(
        schedule_message(&third).starts_with(
            "0/2 nodes are available: 1 node(s) didn't match PersistentVolume's node affinity, 1 node(s) were unschedulable."
        ),
        "{}",
        schedule_message(&third)
    );
}

#[tokio::test]
async fn the_pods_of_a_claim_go_to_the_node_that_was_selected_first() {
    let zone = |name: &str| node(name, json!({"zone": name}), json!({}));
    let (cluster, _running) = cluster_with(vec![zone("windlass"), zone("b")]).await;
    let client = cluster.client();
    let classes: Api<StorageClass> = Api::all(client.clone());
    let class = json!({
        "metadata": {"name": "slow"}, "provisioner": "example.com/absent", "volumeBindingMode": "WaitForFirstConsumer",
    });
    classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
    create::<PersistentVolumeClaim>(&client, claim("data", json!({"storageClassName": "slow"}))).await;
    let on = |name: &str, node: &str| {
        let mut pod = using(name, "data");
        pod["spec"]["nodeSelector"] = json!({"zone": node});
        pod
    };
    let selected = |claim: &PersistentVolumeClaim| {
        claim.annotations().get("volume.kubernetes.io/selected-node").cloned().unwrap_or_default()
    };
    create::<Pod>(&client, on("first", "b")).await;
    becomes::<PersistentVolumeClaim>(&client, "data", |claim| selected(claim) == "b").await;
    create::<Pod>(&client, on("second", "windlass")).await;
    let second = becomes::<Pod>(&client, "second", |pod| !schedule_message(pod).is_empty()).await;
    let reason = "1 node(s) didn't find available persistent volumes to bind";
    assert!(schedule_message(&second).contains(reason), "{}", schedule_message(&second));
    becomes::<PersistentVolumeClaim>(&client, "data", |claim| selected(claim) == "b").await;
    // The deletion of the selected node frees the claim for another node.
    delete::<Pod>(&client, "first", DeleteParams::default()).await;
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.delete("b", &DeleteParams::default()).await.unwrap();
    becomes::<PersistentVolumeClaim>(&client, "data", |claim| selected(claim) == "windlass").await;
}

#[tokio::test]
async fn a_claim_gets_the_default_class_that_appears_later() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let classes: Api<StorageClass> = Api::all(client.clone());
    eventually(WAIT_LIMIT, || classes.get("standard")).await;
    classes.delete("standard", &DeleteParams::default()).await.unwrap();
    create::<PersistentVolumeClaim>(&client, claim("early", json!({}))).await;
    create::<PersistentVolumeClaim>(&client, claim("none", json!({"storageClassName": ""}))).await;
    event(&client, "early", "FailedBinding").await;
    let class = json!({
        "metadata": {"name": "late", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": "windlass.dev/simulated", "volumeBindingMode": "Immediate",
    });
    classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
    let early =
        becomes::<PersistentVolumeClaim>(&client, "early", |claim| claim_phase(claim) == "Bound").await;
    assert_eq!(early.spec.unwrap().storage_class_name.as_deref(), Some("late"));
    let none = api::<PersistentVolumeClaim>(&client).get("none").await.unwrap();
    assert_eq!(none.spec.unwrap().storage_class_name.as_deref(), Some(""));
}

#[tokio::test]
async fn a_deleted_claim_of_an_ephemeral_volume_stays_while_its_pod_runs() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let mut user = pod("user", &json!({}));
    let template = json!({"spec": claim("", json!({}))["spec"]});
    user["spec"]["volumes"] = json!([{"name": "data", "ephemeral": {"volumeClaimTemplate": template}}]);
    create::<Pod>(&client, user).await;
    becomes::<Pod>(&client, "user", |pod| phase(pod) == "Running").await;
    create::<PersistentVolumeClaim>(&client, claim("unused", json!({}))).await;
    for name in ["user-data", "unused"] {
        delete::<PersistentVolumeClaim>(&client, name, DeleteParams::default()).await;
    }
    // The controller has handled the later deletion, so the earlier deletion too.
    gone::<PersistentVolumeClaim>(&client, "unused").await;
    api::<PersistentVolumeClaim>(&client).get("user-data").await.unwrap();
    delete::<Pod>(&client, "user", DeleteParams::default()).await;
    gone::<PersistentVolumeClaim>(&client, "user-data").await;
}

#[tokio::test]
async fn a_claim_for_one_pod_is_used_by_one_pod() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let exclusive = json!({"accessModes": ["ReadWriteOncePod"]});
    create::<PersistentVolumeClaim>(&client, claim("data", exclusive)).await;
    create::<Pod>(&client, using("first", "data")).await;
    becomes::<Pod>(&client, "first", |pod| phase(pod) == "Running").await;
    create::<Pod>(&client, using("second", "data")).await;
    let second = becomes::<Pod>(&client, "second", |pod| !schedule_message(pod).is_empty()).await;
    assert_eq!(
        schedule_message(&second),
        "0/1 nodes are available: 1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already \
         in-use by another pod. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod."
    );
    delete::<Pod>(&client, "first", DeleteParams::default()).await;
    becomes::<Pod>(&client, "second", |pod| phase(pod) == "Running").await;
}

#[tokio::test]
async fn a_claim_that_asks_for_more_gets_more() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<PersistentVolumeClaim>(&client, claim("data", json!({}))).await;
    create::<Pod>(&client, using("p", "data")).await;
    becomes::<PersistentVolumeClaim>(&client, "data", |claim| claim_phase(claim) == "Bound").await;
    let more = Patch::Merge(json!({"spec": {"resources": {"requests": {"storage": "3Gi"}}}}));
    api::<PersistentVolumeClaim>(&client).patch("data", &PatchParams::default(), &more).await.unwrap();
    becomes::<PersistentVolumeClaim>(&client, "data", |claim| {
        let capacity = claim.status.as_ref().and_then(|status| status.capacity.as_ref());
        capacity.is_some_and(|capacity| capacity["storage"].0 == "3Gi")
    })
    .await;
    assert_eq!(event(&client, "data", "VolumeResizeSuccessful").await, "Resize volume succeeded");
}

/// Returns the status and the reason of the condition `Unused`.
fn unused(claim: &PersistentVolumeClaim) -> Option<(&str, &str)> {
    let conditions = claim.status.as_ref()?.conditions.as_ref()?;
    let found = conditions.iter().find(|condition| condition.type_ == "Unused")?;
    Some((&found.status, found.reason.as_deref()?))
}

#[tokio::test]
async fn a_claim_shows_that_no_pod_uses_it() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let immediate = json!({
        "metadata": {"name": "immediate"}, "provisioner": "windlass.dev/simulated", "volumeBindingMode": "Immediate",
    });
    let class: StorageClass = serde_json::from_value(immediate).unwrap();
    Api::<StorageClass>::all(client.clone()).create(&PostParams::default(), &class).await.unwrap();
    create::<PersistentVolumeClaim>(&client, claim("data", json!({"storageClassName": "immediate"}))).await;
    let is = |status: &'static str, reason: &'static str| {
        move |claim: &PersistentVolumeClaim| unused(claim) == Some((status, reason))
    };
    becomes::<PersistentVolumeClaim>(&client, "data", is("True", "NoPodsUsingPVC")).await;
    create::<Pod>(&client, using("web", "data")).await;
    becomes::<PersistentVolumeClaim>(&client, "data", is("False", "PodUsingPVC")).await;
    delete::<Pod>(&client, "web", DeleteParams::default().grace_period(0)).await;
    becomes::<PersistentVolumeClaim>(&client, "data", is("True", "NoPodsUsingPVC")).await;
}
