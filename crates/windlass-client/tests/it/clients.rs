//! Requests of typed clients.

use futures::StreamExt;
use k8s_openapi::{
    api::{apps::v1::Deployment, core::v1::Namespace, rbac::v1::ClusterRole},
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube_client::Api;
use kube_core::{
    params::{Patch, PostParams},
    watch::WatchEvent,
};
use serde_json::json;
use windlass_client::{
    ApplyOptions, CreateOptions, DeleteOptions, GetOptions, ListOptions, PatchOptions, UpdateOptions,
    WatchOptions,
    apply::{ApplyConfiguration as _, core::v1::config_map as configuration},
    clientset::Clientset,
    scheme::{GroupVersionKind, RestMapper},
};
use windlass_test::TestCluster;

use crate::config_map;

#[tokio::test]
async fn a_client_has_the_verbs_of_go() {
    let cluster = TestCluster::start().await;
    let clientset = Clientset::new(cluster.client());
    let client = clientset.core_v1().config_maps("default");
    let created = client.create(&config_map("a", "blue"), &CreateOptions::default()).await.expect("created");
    let error =
        client.create(&config_map("a", "red"), &CreateOptions::default()).await.expect_err("it exists");
    assert!(error.is_already_exists(), "{error}");
    assert!(error.to_string().contains("creating configmaps a"), "{error}");

    let version = created.metadata.resource_version.clone().expect("a version");
    let mut changed = created.clone();
    changed.data.get_or_insert_default().insert("size".to_owned(), "1".to_owned());
    client.update(&changed, &UpdateOptions::default()).await.expect("updated");
    let stale = client.update(&changed, &UpdateOptions::default()).await.expect_err("a conflict");
    assert!(stale.is_conflict(), "{stale}");

    let patch = Patch::Merge(json!({ "data": { "size": "2" } }));
    let patched = client.patch("a", &patch, &PatchOptions::default()).await.expect("patched");
    assert_eq!(patched.data.expect("data")["size"], "2");
    let applied = configuration("a", "default").data([("shape", "round")]).label("team", "x");
    let applied = client.apply(&applied, &ApplyOptions::apply("test")).await.expect("applied");
    assert_eq!(applied.data.expect("data")["shape"], "round");

    let found = client.list(&ListOptions::default().labels("color=blue")).await.expect("listed");
    assert_eq!(found.items.len(), 1);
    let everywhere = clientset.core_v1().config_maps("").list(&ListOptions::default()).await.expect("listed");
    assert!(everywhere.items.iter().any(|object| object.metadata.name.as_deref() == Some("a")));
    let mut events = Box::pin(client.watch(&WatchOptions::default(), &version).await.expect("watched"));
    let first = events.next().await.expect("an event").expect("decoded");
    assert!(matches!(first, WatchEvent::Modified(object) if object.metadata.name.as_deref() == Some("a")));

    client.delete("a", &DeleteOptions::default()).await.expect("deleted");
    assert!(client.get("a", &GetOptions::default()).await.expect_err("gone").is_not_found());
    client.create(&config_map("b", "blue"), &CreateOptions::default()).await.expect("created");
    let blue = ListOptions::default().labels("color=blue");
    client.delete_collection(&DeleteOptions::default(), &blue).await.expect("deleted");
    assert!(client.list(&blue).await.expect("listed").items.is_empty());
}

#[tokio::test]
async fn a_name_reaches_no_other_object() {
    let cluster = TestCluster::start().await;
    let clientset = Clientset::new(cluster.client());
    let roles = clientset.rbac_v1().cluster_roles();
    let mut role = ClusterRole::default();
    role.metadata.name = Some("a?b#c".to_owned());
    roles.create(&role, &CreateOptions::default()).await.expect("created");
    let mut found = roles.get("a?b#c", &GetOptions::default()).await.expect("found");
    assert_eq!(found.metadata.name, role.metadata.name);
    found.metadata.labels = Some([("team".to_owned(), "a".to_owned())].into());
    roles.update(&found, &UpdateOptions::default()).await.expect("updated");
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "size": "1" } } }));
    let patched = roles.patch("a?b#c", &patch, &PatchOptions::default()).await.expect("patched");
    assert_eq!(patched.metadata.labels.expect("labels").len(), 2);
    roles.delete("a?b#c", &DeleteOptions::default()).await.expect("deleted");
    assert!(roles.get("a?b#c", &GetOptions::default()).await.expect_err("gone").is_not_found());

    let error = roles.get("../../v1/roles", &GetOptions::default()).await.expect_err("no name").to_string();
    assert!(
        error.starts_with("getting clusterroles ../../v1/roles: \"../../v1/roles\" cannot be a name"),
        "{error}"
    );
    let elsewhere = clientset.core_v1().config_maps("default/secrets");
    let error = elsewhere.list(&ListOptions::default()).await.expect_err("no namespace").to_string();
    assert!(error.starts_with("listing configmaps: \"default/secrets\" cannot be a name"), "{error}");
    let api = elsewhere.api().list(&ListOptions::default()).await.expect("no such namespace");
    assert!(api.items.is_empty());
}

#[tokio::test]
async fn status_and_scale_are_written_apart() {
    let cluster = TestCluster::start().await;
    let clientset = Clientset::new(cluster.client());
    let deployments = clientset.apps_v1().deployments("default");
    let web: Deployment = serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": { "selector": { "matchLabels": { "app": "web" } }, "template": {
            "metadata": { "labels": { "app": "web" } }, "spec": { "containers": [{ "name": "main", "image": "nginx" }] } } },
    }))
    .expect("a deployment");
    let mut web = deployments.create(&web, &CreateOptions::default()).await.expect("created");
    web.status.get_or_insert_default().replicas = Some(7);
    web.spec.as_mut().expect("a spec").paused = Some(true);
    let updated = deployments.update_status(&web, &UpdateOptions::default()).await.expect("updated");
    assert_eq!(updated.status.expect("a status").replicas, Some(7));
    assert_ne!(updated.spec.expect("a spec").paused, Some(true));

    let mut scale = deployments.get_scale("web").await.expect("a scale");
    scale.spec.get_or_insert_default().replicas = Some(3);
    let scaled = deployments.update_scale("web", &scale, &UpdateOptions::default()).await.expect("scaled");
    assert_eq!(scaled.spec.expect("a spec").replicas, Some(3));

    let mut namespace = Namespace::default();
    namespace.metadata.name = Some("team".to_owned());
    let namespaces = clientset.core_v1().namespaces();
    namespaces.create(&namespace, &CreateOptions::default()).await.expect("created");
    assert!(namespaces.get("team", &GetOptions::default()).await.is_ok());
}

#[tokio::test]
async fn a_mapper_from_the_server_agrees_with_the_generated_one() {
    let cluster = TestCluster::start().await;
    let asked = RestMapper::discover(&cluster.client()).await.expect("discovery");
    let generated = windlass_client::register::rest_mapper();
    for kind in ["Pod", "ConfigMap", "Node"] {
        let mapping = generated.rest_mapping("", kind, &[]).expect("a mapping");
        assert_eq!(asked.rest_mapping("", kind, &["v1"]), Ok(mapping));
    }
    assert_eq!(asked.kind_for_resource("deployments"), Ok(GroupVersionKind::gvk("apps", "v1", "Deployment")));
}

#[tokio::test]
async fn a_mapper_leaves_out_an_aggregated_api_whose_server_is_down() {
    let cluster = TestCluster::start().await;
    let service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": { "name": "v1.down.example.com" },
        "spec": {
            "group": "down.example.com", "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
            "insecureSkipTLSVerify": true, "service": { "name": "nobody", "namespace": "default" },
        },
    });
    let service: APIService = serde_json::from_value(service).expect("an APIService");
    Api::all(cluster.client()).create(&PostParams::default(), &service).await.expect("created");

    let mapper = RestMapper::discover(&cluster.client()).await.expect("discovery");
    assert!(mapper.rest_mapping("apps", "Deployment", &[]).is_ok());
}
