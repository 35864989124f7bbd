//! Pods that refer to ConfigMaps and Secrets, on the simulated node.

use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Pod, Secret};
use kube_client::Client;
use kube_client::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};
use windlass_test::{TestCluster, eventually};

use crate::support::{WAIT_LIMIT, api, becomes, create, create_in, delete, gone, phase};

/// A pod with a volume of the Secret `files`, and with the variables of the ConfigMap `settings`.
fn needy(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "volumes": [{"name": "files", "secret": {"secretName": "files"}}],
            "containers": [{
                "name": "c",
                "image": "busybox",
                "envFrom": [{"configMapRef": {"name": "settings"}}],
                "volumeMounts": [{"name": "files", "mountPath": "/files"}],
            }],
        },
    })
}

/// Returns the reason and the message of the first container's waiting state.
fn waiting(pod: &Pod) -> Option<(String, String)> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let waiting = statuses[0].state.as_ref()?.waiting.clone()?;
    Some((waiting.reason.unwrap_or_default(), waiting.message.unwrap_or_default()))
}

async fn recorded(client: &Client, reason: &str, message: &str) {
    eventually(WAIT_LIMIT, || async {
        let events =
            api::<Event>(client).list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let texts: Vec<(Option<String>, Option<String>)> =
            events.items.into_iter().map(|event| (event.reason, event.message)).collect();
        let is_it = |(known, text): &(Option<String>, Option<String>)| {
            known.as_deref() == Some(reason) && text.as_deref() == Some(message)
        };
        if texts.iter().any(is_it) { Ok(()) } else { Err(format!("{texts:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_pod_starts_as_soon_as_its_objects_exist() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<Pod>(&client, needy("web")).await;
    let missing = "MountVolume.SetUp failed for volume \"files\" : secret \"files\" not found";
    recorded(&client, "FailedMount", missing).await;
    let pod = api::<Pod>(&client).get("web").await.unwrap();
    assert_eq!((phase(&pod), waiting(&pod).unwrap().0.as_str()), ("Pending", "ContainerCreating"));

    create::<Secret>(&client, json!({"metadata": {"name": "files"}})).await;
    let wanted = ("CreateContainerConfigError".to_owned(), "configmap \"settings\" not found".to_owned());
    becomes::<Pod>(&client, "web", |pod| waiting(pod).as_ref() == Some(&wanted)).await;
    recorded(&client, "Failed", "Error: configmap \"settings\" not found").await;

    create::<ConfigMap>(&client, json!({"metadata": {"name": "settings"}})).await;
    let pod = becomes::<Pod>(&client, "web", |pod| phase(pod) == "Running").await;
    assert_eq!(pod.status.unwrap().container_statuses.unwrap()[0].restart_count, 0);
}

#[tokio::test]
async fn a_pod_that_waits_for_an_object_can_be_deleted() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    create::<Pod>(&client, needy("web")).await;
    becomes::<Pod>(&client, "web", |pod| waiting(pod).is_some()).await;
    delete::<Pod>(&client, "web", DeleteParams::default()).await;
    gone::<Pod>(&client, "web").await;
}

#[tokio::test]
async fn an_annotation_of_the_pod_or_the_namespace_or_an_option_gives_pods_that_wait_for_nothing() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let lenient = json!({"kubelet.windlass.dev/strict": "false"});
    let mut pod = needy("lenient");
    pod["metadata"]["annotations"] = lenient.clone();
    create::<Pod>(&client, pod).await;
    becomes::<Pod>(&client, "lenient", |pod| phase(pod) == "Running").await;

    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = json!({"metadata": {"name": "lenient", "annotations": lenient}});
    namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await.unwrap();
    create_in::<Pod>(&client, "lenient", needy("web")).await;
    let pods: Api<Pod> = Api::namespaced(client, "lenient");
    eventually(WAIT_LIMIT, || async {
        let pod = pods.get("web").await.map_err(|error| error.to_string())?;
        if phase(&pod) == "Running" { Ok(()) } else { Err(format!("{:?}", pod.status)) }
    })
    .await;

    let cluster = TestCluster::builder().strict(false).start().await;
    create::<Pod>(&cluster.client(), needy("web")).await;
    becomes::<Pod>(&cluster.client(), "web", |pod| phase(pod) == "Running").await;
}

#[tokio::test]
async fn an_ephemeral_volume_gets_a_claim_of_the_pod() {
    use k8s_openapi::api::core::v1::PersistentVolumeClaim;
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let pod = json!({
        "metadata": {"name": "web"},
        "spec": {
            "volumes": [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}],
            "containers": [{"name": "c", "image": "busybox"}],
        },
    });
    let pod = create::<Pod>(&client, pod).await;
    let claims: Api<PersistentVolumeClaim> = api(&client);
    let claim = eventually(WAIT_LIMIT, || async {
        claims.get("web-scratch").await.map_err(|error| error.to_string())
    })
    .await;
    let owner = &claim.metadata.owner_references.unwrap()[0];
    assert_eq!((owner.kind.as_str(), Some(&owner.uid)), ("Pod", pod.metadata.uid.as_ref()));
    assert_eq!(claim.metadata.labels.unwrap()["a"], "b");
}
