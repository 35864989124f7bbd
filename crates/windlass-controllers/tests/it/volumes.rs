//! The deletion of volumes and volume attributes classes that are in use.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::VolumeAttributesClass;
use kube_client::api::{Api, DeleteParams, PostParams};
use kube_core::ResourceExt;
use serde_json::json;
use windlass_test::{TestCluster, eventually};

use crate::support::{WAIT_LIMIT, becomes, create, delete};

#[tokio::test]
async fn a_deleted_volume_stays_while_it_is_bound() {
    let cluster = TestCluster::with_controllers().await;
    let volumes: Api<PersistentVolume> = Api::all(cluster.client());
    let volume = |name: &str| {
        let spec = json!({"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp"}});
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
    };
    for name in ["free", "bound"] {
        volumes.create(&PostParams::default(), &volume(name)).await.unwrap();
    }
    let client = cluster.client();
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "bound",
        "resources": {"requests": {"storage": "1Gi"}},
    });
    create::<PersistentVolumeClaim>(&client, json!({"metadata": {"name": "data"}, "spec": spec})).await;
    becomes::<PersistentVolumeClaim>(&client, "data", |claim| {
        claim.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Bound"))
    })
    .await;
    for name in ["bound", "free"] {
        volumes.delete(name, &DeleteParams::default()).await.unwrap();
    }
    gone(&volumes, "free").await;
    assert_eq!(volumes.get("bound").await.unwrap().finalizers(), ["kubernetes.io/pv-protection"]);
    delete::<PersistentVolumeClaim>(&client, "data", DeleteParams::default()).await;
    gone(&volumes, "bound").await;
}

#[tokio::test]
async fn a_deleted_volume_attributes_class_stays_while_a_claim_names_it() {
    let cluster = TestCluster::with_controllers().await;
    let classes: Api<VolumeAttributesClass> = Api::all(cluster.client());
    for name in ["free", "used"] {
        let class = json!({"metadata": {"name": name}, "driverName": "a.b", "parameters": {"a": "b"}});
        classes.create(&PostParams::default(), &serde_json::from_value(class).unwrap()).await.unwrap();
    }
    let client = cluster.client();
    let spec = json!({
        "accessModes": ["ReadWriteOnce"], "volumeAttributesClassName": "used",
        "resources": {"requests": {"storage": "1Gi"}}
    });
    create::<PersistentVolumeClaim>(&client, json!({"metadata": {"name": "a"}, "spec": spec})).await;
    for name in ["used", "free"] {
        classes.delete(name, &DeleteParams::default()).await.unwrap();
    }
    gone(&classes, "free").await;
    assert_eq!(classes.get("used").await.unwrap().finalizers(), ["kubernetes.io/vac-protection"]);
    delete::<PersistentVolumeClaim>(&client, "a", DeleteParams::default()).await;
    gone(&classes, "used").await;
}

async fn gone<K>(api: &Api<K>, name: &str)
where
    K: Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    eventually(WAIT_LIMIT, || async {
        match api.get_opt(name).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}
