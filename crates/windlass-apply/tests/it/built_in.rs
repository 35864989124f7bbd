use k8s_openapi::{ByteString, api::apps::v1::Deployment};
use kube_core::{Resource, ResourceExt as _};
use serde_json::{json, to_value};
use windlass_apply::{
    ApplyConfiguration as _,
    apps::v1::{deployment, deployment_spec, deployment_status},
    autoscaling::v1::{scale, scale_spec},
    core::v1::{
        config_map, container, container_port, env_var, http_get_action, namespace, pod_template_spec, probe,
        resource_requirements, secret, service, service_port,
    },
    meta::v1::label_selector,
    rbac::v1::{cluster_role, policy_rule},
};

#[test]
fn only_what_was_set_is_sent() {
    let web = deployment("web", "default").replicas(3);
    let wanted = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": { "name": "web", "namespace": "default" },
        "spec": { "replicas": 3 },
    });
    assert_eq!(to_value(web).unwrap(), wanted);
    let empty = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "a" } });
    assert_eq!(to_value(namespace("a")).unwrap(), empty);
}

#[test]
fn a_configuration_reads_as_the_object() {
    let probe = probe().http_get(http_get_action().path("/healthz").port("http")).period_seconds(5);
    let main = container("main")
        .image("nginx")
        .args(["-v"])
        .env([env_var("MODE").value("fast")])
        .ports([container_port(80).name("http")])
        .liveness_probe(probe)
        .resources(resource_requirements().limits([("cpu", "500m"), ("memory", "64Mi")]));
    let web = deployment("web", "default")
        .label("app", "web")
        .annotation("example.com/note", "n")
        .selector(label_selector().match_labels([("app", "web")]))
        .template(pod_template_spec().with_labels([("app", "web")]).containers([main]));
    let wanted = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "default", "labels": { "app": "web" },
            "annotations": { "example.com/note": "n" },
        },
        "spec": {
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{
                    "name": "main", "image": "nginx", "args": ["-v"],
                    "env": [{ "name": "MODE", "value": "fast" }],
                    "ports": [{ "containerPort": 80, "name": "http" }],
                    "livenessProbe": { "httpGet": { "path": "/healthz", "port": "http" }, "periodSeconds": 5 },
                    "resources": { "limits": { "cpu": "500m", "memory": "64Mi" } },
                }] },
            },
        },
    });
    assert_eq!(to_value(&web).unwrap(), wanted);
    let decoded: Deployment = serde_json::from_value(wanted).unwrap();
    assert_eq!(decoded.labels(), web.metadata.labels.as_ref().unwrap());
}

#[test]
fn setters_of_lists_and_maps_add_and_a_spec_is_kept() {
    let twice = deployment("web", "default")
        .spec(deployment_spec().paused(true))
        .replicas(1)
        .with_labels([("a", "1")]);
    let twice = twice.with_labels([("b", "2")]).finalizer("example.com/x");
    let value = to_value(twice).unwrap();
    assert_eq!(value["spec"], json!({ "paused": true, "replicas": 1 }));
    assert_eq!(value["metadata"]["labels"], json!({ "a": "1", "b": "2" }));
    assert_eq!(value["metadata"]["finalizers"], json!(["example.com/x"]));
    let none: [&str; 0] = [];
    assert_eq!(
        to_value(container("a").args(none)).unwrap(),
        json!({ "name": "a", "args": [] }),
        "an empty list is set"
    );
}

#[test]
fn values_of_every_sort() {
    let data = secret("s", "default").data([("k", "v")]).string_data([("text", "t")]);
    assert_eq!(to_value(data).unwrap()["data"], json!({ "k": "dg==" }));
    let bytes = secret("s", "default").data([("k", ByteString(vec![0]))]);
    assert_eq!(to_value(bytes).unwrap()["data"], json!({ "k": "AA==" }));
    let ports = service("web", "default")
        .ports([service_port(80).target_port(8080), service_port(81).target_port("alt")]);
    let wanted = json!([{ "port": 80, "targetPort": 8080 }, { "port": 81, "targetPort": "alt" }]);
    assert_eq!(to_value(ports).unwrap()["spec"]["ports"], wanted);
    let rule = policy_rule().api_groups([""]).resources(["pods"]).verbs(["get"]);
    let role = to_value(cluster_role("reader").rules([rule])).unwrap();
    assert_eq!(role["rules"], json!([{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }]));
    let scaled = to_value(scale("web", "default").spec(scale_spec().replicas(2))).unwrap();
    assert_eq!(scaled["apiVersion"], "autoscaling/v1");
    let status = deployment("web", "default").status(deployment_status().ready_replicas(1));
    assert_eq!(to_value(status).unwrap()["status"], json!({ "readyReplicas": 1 }));
}

#[test]
fn a_configuration_is_a_resource_and_prints_what_is_set() {
    let map = config_map("c", "default").data([("a", "1")]);
    assert_eq!(map.name_any(), "c");
    assert_eq!(map.namespace().as_deref(), Some("default"));
    assert_eq!(windlass_apply::core::v1::ConfigMapApplyConfiguration::plural(&()), "configmaps");
    assert_eq!(map, config_map("c", "default").data([("a", "1")]));
    assert_ne!(map, config_map("c", "default"));
    assert_eq!(
        format!("{map:?}"),
        r#"{"apiVersion":"v1","data":{"a":"1"},"kind":"ConfigMap","metadata":{"name":"c","namespace":"default"}}"#
    );
}
