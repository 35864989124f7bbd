//! Contents and deletion of namespaces.

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, ServiceAccount};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Client;
use kube_client::api::{
    Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde_json::json;
use windlass_test::{TestCluster, eventually};

use crate::support::{WAIT_LIMIT, create_in, delete, pod};

async fn namespace(client: &Client, name: &str) -> Api<Namespace> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let object = serde_json::from_value(json!({"metadata": {"name": name}})).unwrap();
    namespaces.create(&PostParams::default(), &object).await.unwrap();
    namespaces
}

async fn has_service_account(client: &Client, namespace: &str) {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    eventually(WAIT_LIMIT, || async { accounts.get("default").await.map(drop) }).await;
}

#[tokio::test]
async fn every_namespace_has_a_service_account_and_gets_it_back() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    namespace(&client, "team").await;
    has_service_account(&client, "team").await;
    has_service_account(&client, "kube-system").await;
    delete::<ServiceAccount>(&client, "default", DeleteParams::default()).await;
    has_service_account(&client, "default").await;
}

#[tokio::test]
async fn a_namespace_ends_when_all_that_is_in_it_has_ended() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let namespaces = namespace(&client, "team").await;
    has_service_account(&client, "team").await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}});
    create_in::<ConfigMap>(&client, "team", held).await;
    create_in::<Pod>(&client, "team", pod("p", &json!({}))).await;
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    eventually(WAIT_LIMIT, || async {
        let status =
            namespaces.get("team").await.map_err(|error| error.to_string())?.status.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let message = |kind: &str| {
            conditions.iter().find(|c| c.type_ == kind).and_then(|c| c.message.clone()).unwrap_or_default()
        };
        let remaining = message("NamespaceContentRemaining");
        let holding = message("NamespaceFinalizersRemaining");
        let expected = "Some resources are remaining: configmaps. has 1 resource instances";
        if remaining == expected && holding.contains("example.com/hold in 1 resource instances") {
            Ok(())
        } else {
            Err(format!("{:?} {remaining} {holding}", status.phase))
        }
    })
    .await;
    let configs: Api<ConfigMap> = Api::namespaced(client.clone(), "team");
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    configs.patch("held", &PatchParams::default(), &release).await.unwrap();
    eventually(WAIT_LIMIT, || async {
        match namespaces.get_opt("team").await.map_err(|error| error.to_string())? {
            None => Ok(()),
            Some(namespace) => Err(format!("{:?}", namespace.status)),
        }
    })
    .await;
}

#[tokio::test]
async fn pods_go_before_everything_else_in_a_namespace() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let namespaces = namespace(&client, "team").await;
    has_service_account(&client, "team").await;
    create_in::<ConfigMap>(&client, "team", json!({"metadata": {"name": "needed"}})).await;
    let mut held = pod("held", &json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    create_in::<Pod>(&client, "team", held).await;
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client.clone(), "team");
    eventually(WAIT_LIMIT, || async {
        let held = pods.get("held").await.map_err(|error| error.to_string())?;
        let namespace = namespaces.get("team").await.map_err(|error| error.to_string())?;
        let has_been_looked_at = namespace.status.is_some_and(|status| status.conditions.is_some());
        if held.metadata.deletion_timestamp.is_some() && has_been_looked_at {
            Ok(())
        } else {
            Err("not yet deleted".to_owned())
        }
    })
    .await;
    Api::<ConfigMap>::namespaced(client.clone(), "team").get("needed").await.expect("it waits for the pod");
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    pods.patch("held", &PatchParams::default(), &release).await.unwrap();
    eventually(WAIT_LIMIT, || async {
        match namespaces.get_opt("team").await.map_err(|error| error.to_string())? {
            None => Ok(()),
            Some(namespace) => Err(format!("{:?}", namespace.status)),
        }
    })
    .await;
}

#[tokio::test]
async fn a_kind_that_a_webhook_converts_does_not_keep_a_namespace() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let version = |name: &str, storage: bool| {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        json!({"name": name, "served": true, "storage": storage, "schema": schema})
    };
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            // The preferred version is not the storage version.
            "versions": [version("v2", false), version("v1", true)],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {
                    "conversionReviewVersions": ["v1"],
                    "clientConfig": {"url": "https://localhost:1/"},
                },
            },
        },
    });
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &serde_json::from_value(definition).unwrap()).await.unwrap();
    let namespaces = namespace(&client, "team").await;
    has_service_account(&client, "team").await;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    let widgets: Api<DynamicObject> = Api::namespaced_with(client.clone(), "team", &kind);
    widgets.create(&PostParams::default(), &DynamicObject::new("a", &kind)).await.unwrap();
    namespaces.delete("team", &DeleteParams::default()).await.unwrap();
    eventually(WAIT_LIMIT, || async {
        match namespaces.get_opt("team").await {
            Ok(None) => Ok(()),
            Ok(Some(namespace)) => Err(format!("{:?}", namespace.status)),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
}
