//! The objects that a server creates for itself.

use expect_test::{expect, expect_file};
use serde_json::{Value, json};

use crate::fixtures::{group, widgets};
use crate::harness::{Api, lines};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
const FLOW_CONTROL: &str = "/apis/flowcontrol.apiserver.k8s.io/v1";

/// Returns the objects of a list that the server made, an object a line, without parts that differ between
/// two servers.
async fn objects(api: &Api, path: &str, own: impl Fn(&Value) -> bool) -> String {
    let items = api.get(path).await.is(200).at("/items");
    let shown = items.as_array().unwrap().iter().filter(|object| own(object)).map(|object| {
        let mut object = object.clone();
        let metadata = object["metadata"].as_object_mut().unwrap();
        for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            metadata.remove(field);
        }
        if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
            for condition in conditions {
                condition.as_object_mut().unwrap().remove("lastTransitionTime");
            }
        }
        // The author of these rules, and the time, are tested elsewhere.
        if object.get("aggregationRule").is_some() {
            object.as_object_mut().unwrap().remove("rules");
        }
        object.to_string()
    });
    lines(&shown.collect::<Vec<_>>())
}

fn is_of_policy(object: &Value) -> bool {
    object["metadata"]["labels"]["kubernetes.io/bootstrapping"] == "rbac-defaults"
}

#[tokio::test]
async fn roles_and_bindings() {
    let api = Api::start();
    let mut seen = String::new();
    for resource in ["clusterroles", "clusterrolebindings", "roles", "rolebindings"] {
        seen += &objects(&api, &format!("{RBAC}/{resource}"), is_of_policy).await;
    }
    expect_file!["recorded/policy.txt"].assert_eq(&seen);
}

#[tokio::test]
async fn flow_control() {
    let api = Api::start();
    let seen = objects(&api, &format!("{FLOW_CONTROL}/flowschemas"), |_| true).await
        + &objects(&api, &format!("{FLOW_CONTROL}/prioritylevelconfigurations"), |_| true).await;
    expect_file!["recorded/flow_control.txt"].assert_eq(&seen);
}

#[tokio::test]
async fn api_services() {
    let api = Api::start();
    let own = |object: &Value| {
        object["metadata"]["labels"]["kube-aggregator.kubernetes.io/automanaged"] == "onstart"
    };
    let items = objects(&api, API_SERVICES, own).await;
    let shown = items.lines().map(|line| {
        let object: Value = serde_json::from_str(line).unwrap();
        let (spec, condition) = (&object["spec"], &object["status"]["conditions"][0]);
        let priorities =
            [&spec["groupPriorityMinimum"], &spec["versionPriority"]].map(Value::to_string).join(" ");
        let name = object["metadata"]["name"].as_str().unwrap();
        format!("{name} {priorities} {} {} {}", condition["type"], condition["status"], condition["reason"])
    });
    expect![[r#"
        v1. 18000 1 "Available" "True" "Local"
        v1.admissionregistration.k8s.io 16700 15 "Available" "True" "Local"
        v1.apiextensions.k8s.io 16700 15 "Available" "True" "Local"
        v1.apps 17800 15 "Available" "True" "Local"
        v1.authentication.k8s.io 17700 15 "Available" "True" "Local"
        v1.authorization.k8s.io 17600 15 "Available" "True" "Local"
        v1.autoscaling 17500 15 "Available" "True" "Local"
        v1.batch 17400 15 "Available" "True" "Local"
        v1.certificates.k8s.io 17300 15 "Available" "True" "Local"
        v1.coordination.k8s.io 16500 15 "Available" "True" "Local"
        v1.discovery.k8s.io 16200 15 "Available" "True" "Local"
        v1.events.k8s.io 17750 15 "Available" "True" "Local"
        v1.flowcontrol.apiserver.k8s.io 16100 21 "Available" "True" "Local"
        v1.networking.k8s.io 17200 15 "Available" "True" "Local"
        v1.node.k8s.io 16300 15 "Available" "True" "Local"
        v1.policy 17100 15 "Available" "True" "Local"
        v1.rbac.authorization.k8s.io 17000 15 "Available" "True" "Local"
        v1.resource.k8s.io 16200 21 "Available" "True" "Local"
        v1.scheduling.k8s.io 16600 15 "Available" "True" "Local"
        v1.storage.k8s.io 16800 15 "Available" "True" "Local"
        v1.storagemigration.k8s.io 15800 15 "Available" "True" "Local"
        v2.autoscaling 17500 30 "Available" "True" "Local"
    "#]]
    .assert_eq(&lines(&shown.collect::<Vec<_>>()));
}

#[tokio::test]
async fn a_definition_has_an_api_service_for_each_version() {
    let api = Api::start();
    let mut definition = widgets(&api);
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    definition["spec"]["versions"].as_array_mut().unwrap().push(second);
    let created = api.crd(definition).await;
    let path = |version: &str| format!("{API_SERVICES}/{version}.{}", group(&api));
    let available = |reply: &crate::harness::Reply| reply.at("/status/conditions/0/status") == "True";
    let service = api.eventually(&path("v1"), available).await;
    let spec =
        json!({"group": group(&api), "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 100});
    assert_eq!(service.at("/spec"), spec);
    let labels = json!({"kube-aggregator.kubernetes.io/automanaged": "true"});
    assert_eq!(service.at("/metadata/labels"), labels);
    api.eventually(&path("v2"), available).await;
    let name = created["metadata"]["name"].as_str().unwrap();
    let definition = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
    let no_v2 = json!([{"op": "remove", "path": "/spec/versions/1"}]);
    api.patch(&definition, crate::harness::JSON_PATCH, no_v2).await.is(200);
    api.eventually(&path("v2"), |reply| reply.code == 404).await;
    api.delete(&definition).await.is(200);
    api.eventually(&path("v1"), |reply| reply.code == 404).await;
}

#[tokio::test]
async fn the_service_of_the_server_has_endpoints_and_an_address() {
    let api = Api::start_over_tls();
    let endpoints = api.get("/api/v1/namespaces/default/endpoints/kubernetes").await.is(200);
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = api.get(&format!("{slices}/kubernetes")).await.is(200);
    assert_eq!(endpoints.at("/subsets/0/ports"), slice.at("/ports"));
    assert_eq!(endpoints.at("/subsets/0/addresses/0/ip"), slice.at("/endpoints/0/addresses/0"));
    assert_eq!(slice.at("/endpoints/0/conditions"), json!({"ready": true}));
    assert_eq!(slice.at("/metadata/labels"), json!({"kubernetes.io/service-name": "kubernetes"}));
    let networking = "/apis/networking.k8s.io/v1";
    let address = api.get(&format!("{networking}/ipaddresses/10.0.0.1")).await.is(200);
    assert_eq!(
        address.at("/spec/parentRef"),
        json!({"resource": "services", "namespace": "default", "name": "kubernetes"})
    );
    let range = api.get(&format!("{networking}/servicecidrs/kubernetes")).await.is(200);
    assert_eq!(range.at("/spec/cidrs"), json!(["10.0.0.0/24"]));
    assert_eq!(range.text_at("/status/conditions/0/message"), "Kubernetes default Service CIDR is ready");
}

#[tokio::test]
async fn the_server_has_a_lease_and_config_maps() {
    let api = Api::start();
    let leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
    let own = "labelSelector=apiserver.kubernetes.io%2Fidentity%3Dkube-apiserver";
    let lease = api.get(&format!("{leases}?{own}")).await.is(200);
    assert_eq!(lease.at("/items/0/spec/leaseDurationSeconds"), 3600);
    assert!(lease.text_at("/items/0/metadata/name").starts_with("apiserver-"));
    let maps = "/api/v1/namespaces/kube-system/configmaps";
    let tracking =
        api.get(&format!("{maps}/kube-apiserver-legacy-service-account-token-tracking")).await.is(200);
    assert_eq!(tracking.text_at("/data/since").len(), "2026-01-01".len());
}

#[tokio::test]
async fn two_servers_have_objects_of_their_own() {
    let one = Api::start();
    if one.is_shared() {
        return;
    }
    let role = format!("{RBAC}/clusterroles/view");
    let uid = async |api: &Api| api.get(&role).await.is(200).text_at("/metadata/uid");
    assert_ne!(uid(&one).await, uid(&Api::start()).await);
}
