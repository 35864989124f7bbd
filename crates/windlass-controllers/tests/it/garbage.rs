//! The garbage collector.

use k8s_openapi::api::core::v1::{ConfigMap, Event};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::Client;
use kube_client::api::{
    Api, ApiResource, DeleteParams, ListParams, Patch, PatchParams, PostParams, PropagationPolicy,
};
use kube_core::{DynamicObject, ResourceExt};
use serde_json::{Value, json};
use windlass_test::{TestCluster, eventually};

use crate::support::{WAIT_LIMIT, api, becomes, config, create_in, delete, gone, owner};

fn orphan() -> DeleteParams {
    DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() }
}

#[tokio::test]
async fn dependents_of_dependents_go_with_their_owner() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let parent = config(&client, "parent", &[]).await;
    let child = config(&client, "child", &[owner(&parent)]).await;
    config(&client, "grandchild", &[owner(&child)]).await;
    delete::<ConfigMap>(&client, "parent", DeleteParams::background()).await;
    gone::<ConfigMap>(&client, "child").await;
    gone::<ConfigMap>(&client, "grandchild").await;
}

#[tokio::test]
async fn foreground_deletion_keeps_the_owner_until_the_last_dependent_is_gone() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let parent = config(&client, "parent", &[]).await;
    let child = config(&client, "child", &[owner(&parent)]).await;
    config(&client, "grandchild", &[owner(&child)]).await;
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/hold"]}}));
    api::<ConfigMap>(&client).patch("grandchild", &PatchParams::default(), &hold).await.unwrap();
    delete::<ConfigMap>(&client, "parent", DeleteParams::foreground()).await;
    let deleting = |config: &ConfigMap| config.metadata.deletion_timestamp.is_some();
    becomes(&client, "grandchild", deleting).await;
    for name in ["parent", "child"] {
        let waiting = becomes(&client, name, deleting).await;
        assert_eq!(waiting.finalizers(), ["foregroundDeletion"]);
    }
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api::<ConfigMap>(&client).patch("grandchild", &PatchParams::default(), &release).await.unwrap();
    gone::<ConfigMap>(&client, "parent").await;
    assert!(api::<ConfigMap>(&client).get_opt("child").await.unwrap().is_none());
}

#[tokio::test]
async fn orphaned_dependents_stay_and_forget_their_owner() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let parent = config(&client, "parent", &[]).await;
    config(&client, "child", &[owner(&parent)]).await;
    delete::<ConfigMap>(&client, "parent", orphan()).await;
    gone::<ConfigMap>(&client, "parent").await;
    let child = api::<ConfigMap>(&client).get("child").await.unwrap();
    assert_eq!(child.owner_references(), []);
    assert!(child.metadata.deletion_timestamp.is_none());
}

#[tokio::test]
async fn one_owner_of_two_is_enough_to_stay() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let (first, second) = (config(&client, "first", &[]).await, config(&client, "second", &[]).await);
    config(&client, "child", &[owner(&first), owner(&second)]).await;
    delete::<ConfigMap>(&client, "first", DeleteParams::background()).await;
    let child = becomes(&client, "child", |child: &ConfigMap| child.owner_references().len() == 1).await;
    assert_eq!(child.owner_references()[0].name, "second");
    delete::<ConfigMap>(&client, "second", DeleteParams::background()).await;
    gone::<ConfigMap>(&client, "child").await;
}

#[tokio::test]
async fn an_owner_that_never_was_counts_as_gone() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let nobody = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "0000"});
    config(&client, "child", &[nobody]).await;
    gone::<ConfigMap>(&client, "child").await;
}

#[tokio::test]
async fn an_owner_of_the_same_name_but_another_uid_counts_as_gone() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let mut reference = owner(&config(&client, "parent", &[]).await);
    reference["uid"] = json!("another");
    config(&client, "child", &[reference]).await;
    gone::<ConfigMap>(&client, "child").await;
}

#[tokio::test]
async fn an_owner_in_another_namespace_counts_as_gone_and_an_event_says_why() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let parent: ConfigMap = create_in(&client, "kube-public", json!({"metadata": {"name": "parent"}})).await;
    // The collector must have observed the owner first.
    let warm: ConfigMap = create_in(
        &client,
        "kube-public",
        json!({"metadata": {"name": "c", "ownerReferences": [owner(&parent)]}}),
    )
    .await;
    assert!(warm.uid().is_some());
    config(&client, "child", &[owner(&parent)]).await;
    gone::<ConfigMap>(&client, "child").await;
    let events: Api<Event> = Api::default_namespaced(client.clone());
    eventually(WAIT_LIMIT, || async {
        let events = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let found =
            events.items.into_iter().find(|e| e.reason.as_deref() == Some("OwnerRefInvalidNamespace"));
        let message = found.and_then(|event| event.message).ok_or("no such event")?;
        if message.contains("does not exist in namespace \"default\"") { Ok(()) } else { Err(message) }
    })
    .await;
    assert!(Api::<ConfigMap>::namespaced(client, "kube-public").get_opt("c").await.unwrap().is_some());
}

/// Installs the kind Widget, and creates the Widget `w` with the ConfigMap `child`.
async fn widget_with_child(cluster: &TestCluster) -> Api<DynamicObject> {
    let client = cluster.client();
    let definition = json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    cluster.install(&serde_json::from_value(definition).unwrap()).await;
    let resource = widget_kind();
    let widgets: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let widget = widgets.create(&PostParams::default(), &DynamicObject::new("w", &resource)).await.unwrap();
    config(&client, "child", &[widget_reference("w", widget.metadata.uid)]).await;
    widgets
}

fn widget_kind() -> ApiResource {
    ApiResource {
        group: "example.com".into(),
        version: "v1".into(),
        api_version: "example.com/v1".into(),
        kind: "Widget".into(),
        plural: "widgets".into(),
    }
}

fn widget_reference(name: &str, uid: Option<String>) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "name": name, "uid": uid})
}

async fn uninstall_widgets(client: &Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.delete("widgets.example.com", &DeleteParams::default()).await.unwrap();
}

#[tokio::test]
async fn custom_resources_own_as_soon_as_their_crd_is_there() {
    let cluster = TestCluster::with_controllers().await;
    let widgets = widget_with_child(&cluster).await;
    widgets.delete("w", &DeleteParams::background()).await.unwrap();
    gone::<ConfigMap>(&cluster.client(), "child").await;
}

#[tokio::test]
async fn dependents_go_with_the_crd_of_their_owner() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    let widgets = widget_with_child(&cluster).await;
    // The collector has observed both objects after a foreground deletion that began later.
    let later = DynamicObject::new("later", &widget_kind());
    let later = widgets.create(&PostParams::default(), &later).await.unwrap();
    config(&client, "watched", &[widget_reference("later", later.metadata.uid)]).await;
    widgets.delete("later", &DeleteParams::foreground()).await.unwrap();
    eventually(WAIT_LIMIT, || async {
        match widgets.get_opt("later").await {
            Ok(None) => Ok(()),
            other => Err(format!("the foreground deletion has not finished: {other:?}")),
        }
    })
    .await;
    uninstall_widgets(&client).await;
    gone::<ConfigMap>(&client, "child").await;
}

#[tokio::test]
async fn a_dependent_of_a_kind_that_nobody_knows_stays() {
    let cluster = TestCluster::with_controllers().await;
    let client = cluster.client();
    config(&client, "child", &[widget_reference("w", Some("0000".to_owned()))]).await;
    // The collector has checked the child when it has deleted an object that was created later.
    let nobody = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "0001"});
    config(&client, "later", &[nobody]).await;
    gone::<ConfigMap>(&client, "later").await;
    let child = api::<ConfigMap>(&client).get("child").await.unwrap();
    assert!(child.metadata.deletion_timestamp.is_none());
}
