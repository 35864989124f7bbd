//! Behaviour of kube-apiserver that random traffic has shown, one test for each family.

use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{config_map, deployment, group, pod, widget, widgets, widgets_path};
use crate::harness::{Api, MERGE_PATCH};

const APPLY: &str = "application/apply-patch+yaml";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[tokio::test]
async fn the_initial_bookmark_has_the_zero_values_of_the_kind() {
    let api = Api::start();
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=none";
    let mut watch = api.watch(&format!("/apis/apps/v1/deployments?{query}")).await;
    let spec = watch.next().await.object["spec"].clone();
    let template = json!({"metadata": {}, "spec": {"containers": null}});
    assert_eq!(spec, json!({"replicas": 0, "selector": null, "strategy": {}, "template": template}));
    let mut watch = api.watch(&format!("/apis/apps/v1/daemonsets?{query}")).await;
    let annotations = watch.next().await.object["metadata"]["annotations"].clone();
    assert_eq!(annotations["deprecated.daemonset.template.generation"], "0");
}

#[tokio::test]
async fn a_scale_has_columns_of_its_own() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(&path, deployment("a")).await.is(201);
    let table =
        api.request(Method::GET, &format!("{path}/a/scale")).accept(TABLE).send().await.is(200).json();
    let names = table["columnDefinitions"].as_array().unwrap().iter().map(|column| column["name"].clone());
    assert_eq!(names.collect::<Value>(), json!(["Name", "Desired", "Available", "Age"]));
    assert_eq!(table.pointer("/rows/0/cells/1"), Some(&json!(0)));
}

#[tokio::test]
async fn a_scale_of_zero_has_no_manager() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(&path, deployment("a")).await.is(201);
    let scale = format!("{path}/a/scale?fieldManager=scaler");
    api.patch(&scale, MERGE_PATCH, json!({"spec": {"replicas": 0}})).await.is(200);
    let managers = api.get(&format!("{path}/a")).await.at("/metadata/managedFields");
    assert!(!managers.to_string().contains("scaler"), "{managers}");
}

#[tokio::test]
async fn the_first_field_of_a_spec_may_be_its_replicas() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut definition = widgets(&api);
    let version = &mut definition["spec"]["versions"][0];
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = json!({"type": "object", "properties":
        {"replicas": {"type": "integer"}, "count": {"type": "integer", "default": 1}}});
    version["subresources"] = json!({"scale": {
        "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"
    }});
    api.crd(definition).await;
    let path = format!("/apis/{}/v1/namespaces/{ns}/widgets", group(&api));
    let mut body = widget(&api, "x");
    body.as_object_mut().unwrap().remove("spec");
    api.post(&path, body).await.is(201);
    let one = format!("{path}/x");
    api.patch(&format!("{one}/scale"), MERGE_PATCH, json!({"spec": {"replicas": 0}})).await.is(200);
    let scaled = api.get(&one).await.is(200);
    assert_eq!(scaled.at("/spec"), json!({"count": 1, "replicas": 0}));
    let patched = api.patch(&one, MERGE_PATCH, json!({"spec": {"other": null}})).await.is(200);
    assert_eq!(patched.at("/metadata/managedFields"), scaled.at("/metadata/managedFields"));
}

#[tokio::test]
async fn a_watch_does_not_reach_back_before_its_definition() {
    let api = Api::start();
    let version = api.get("/api/v1/namespaces/default").await.version();
    let path = widgets_path(&api).await;
    let mut watch = api.watch(&format!("{path}?resourceVersion={version}")).await;
    let event = watch.next().await;
    assert_eq!(event.object["code"], 410, "{}", event.object);
}

#[tokio::test]
async fn the_first_update_of_a_claim_is_a_write_and_the_second_is_none() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/persistentvolumeclaims");
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    });
    let created = api.post(&path, claim).await.is(201);
    assert_eq!(created.at("/status/phase"), "Pending");
    let first = api.patch(&format!("{path}/a"), MERGE_PATCH, json!({})).await.is(200);
    assert!(first.version() > created.version());
    let second = api.patch(&format!("{path}/a"), MERGE_PATCH, json!({})).await.is(200);
    assert_eq!(second.version(), first.version());
}

#[tokio::test]
async fn the_empty_name_of_a_namespace_stands_for_all() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), config_map("twin")).await.is(201);
    let all = api.get("/api/v1/namespaces//configmaps?fieldSelector=metadata.name%3Dtwin").await.is(200);
    assert!(!all.names().is_empty());
    api.get(&format!("/api/v1/namespaces/{ns}/namespaces")).await.is(404);
}

#[tokio::test]
async fn formats_and_defaults_of_definitions_are_checked() {
    let api = Api::start();
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    let mut definition = widgets(&api);
    definition.pointer_mut(schema).unwrap()["size"]["format"] = json!("odd");
    definition["spec"]["versions"][0]["deprecationWarning"] = json!("old");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
    let reply = api.post(path, definition.clone()).await.is(422);
    assert_eq!(reply.at("/details/causes/0/field"), "spec.versions[0].deprecationWarning");
    definition["spec"]["versions"][0]["deprecated"] = json!(true);
    let reply = api.post(path, definition.clone()).await.is(201);
    assert!(reply.warnings().iter().any(|text| text.contains("unrecognized format")), "{reply}");
    definition.pointer_mut(schema).unwrap()["size"] = json!({"type": "array", "items": {"required": 1}});
    let reply = api.post(path, definition).await.is(400);
    assert!(reply.text_at("/message").ends_with("properties.items.required of type []string"), "{reply}");
}

#[tokio::test]
async fn a_namespace_that_nothing_holds_is_terminating_before_it_goes() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}");
    let mut namespace = api.get(&path).await.json();
    namespace["spec"]["finalizers"] = json!([]);
    api.put(&format!("{path}/finalize"), namespace).await.is(200);
    let wrong = json!({"preconditions": {"uid": "11111111-1111-4111-8111-111111111111"}});
    let refused = api.delete_with(&path, wrong).await.is(409);
    assert!(refused.text_at("/message").contains("Precondition failed: UID in precondition"), "{refused}");
    assert_eq!(api.delete(&path).await.is(200).at("/status/phase"), "Terminating");
    api.delete(&path).await.is(200);
    api.get(&path).await.is(404);
}

#[tokio::test]
async fn a_service_needs_a_name_for_its_address() {
    let api = Api::start();
    let ns = api.namespace().await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "."}, "spec": {"ports": [{"port": 80}]}
    });
    let path = format!("/api/v1/namespaces/{ns}/services");
    let reply = api.post(&path, service.clone()).await.is(422);
    assert_eq!(reply.at("/details/causes/0/field"), "spec.clusterIPs");
    let reply = api.post(&format!("{path}?dryRun=All"), service).await.is(422);
    assert_eq!(reply.at("/details/causes/0/field"), "metadata.name");
}

#[tokio::test]
async fn a_patch_without_a_version_is_told_why() {
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "a")).await.is(201);
    let reply = api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"apiVersion": null})).await.is(500);
    assert!(reply.text_at("/message").contains("Object 'apiVersion' is missing"), "{reply}");
    let owners = json!({"metadata": {"ownerReferences": [{"kind": ["x"]}]}});
    let reply = api.patch(&format!("{path}/a"), MERGE_PATCH, owners).await.is(422);
    assert!(reply.text_at("/message").contains("OwnerReference.ownerReferences.kind"), "{reply}");
    // An empty list of managers gets lost on the way.
    let reply = api
        .patch(&format!("{path}/a"), MERGE_PATCH, json!({"metadata": {"managedFields": []}}))
        .await
        .is(200);
    assert!(reply.at("/metadata/managedFields/0").is_object());
}

#[tokio::test]
async fn an_apply_fits_the_types_of_the_kind() {
    let api = Api::start();
    let ns = api.namespace().await;
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
        "spec": {"acquireTime": "2001-01-01 00:00"}
    });
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/a?fieldManager=m");
    let reply = api.patch(&path, APPLY, lease).await.is(500);
    assert!(reply.text_at("/message").starts_with("failed to convert new object (/a; "), "{reply}");
}

#[tokio::test]
async fn a_pod_on_a_node_that_is_gone_is_not_resized() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut bound = pod("a");
    bound["spec"]["nodeName"] = json!("gone");
    let path = format!("/api/v1/namespaces/{ns}/pods");
    api.post(&path, bound).await.is(201);
    let size = json!({"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]}});
    let strategic = "application/strategic-merge-patch+json";
    let reply = api.patch(&format!("{path}/a/resize"), strategic, size).await;
    assert!(reply.code == 403 || reply.code == 422, "{reply}");
    api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"spec": {"activeDeadlineSeconds": 9}})).await.is(200);
}

#[tokio::test]
async fn the_scale_of_a_kind_without_replicas_changes_nothing_that_shows() {
    let api = Api::start();
    let mut definition = widgets(&api);
    let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties";
    definition.pointer_mut(schema).unwrap().as_object_mut().unwrap().remove("replicas");
    let ns = api.namespace().await;
    api.crd(definition).await;
    let path = format!("/apis/{}/v1/namespaces/{ns}/widgets", group(&api));
    api.post(&path, widget(&api, "a")).await.is(201);
    let scale =
        api.patch(&format!("{path}/a/scale"), MERGE_PATCH, json!({"spec": {"replicas": 3}})).await.is(200);
    assert_eq!(scale.at("/spec"), json!({}));
    assert_eq!(api.get(&format!("{path}/a")).await.at("/spec/replicas"), Value::Null);
}

#[tokio::test]
async fn the_form_of_a_reply_is_agreed_on_first() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments/x/scale?resourceVersion=none");
    let unknown = "application/json;as=Table;v=v9;g=meta.k8s.io";
    api.request(Method::GET, &path).accept(unknown).send().await.is(406);
    let api = Api::start();
    let path = widgets_path(&api).await;
    api.post(&path, widget(&api, "x")).await.is(201);
    let list = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let reply = api.request(Method::GET, &format!("{path}/x")).accept(list).send().await.is(500);
    assert_eq!(reply.text_at("/message"), "content is not a list");
}

#[tokio::test]
async fn an_old_list_of_a_kind_without_objects_is_empty() {
    let api = Api::start();
    let ns = api.namespace().await;
    let version = api.get(&format!("/api/v1/namespaces/{ns}")).await.version();
    let path = format!("/apis/batch/v1/namespaces/{ns}/jobs");
    let job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}
    });
    api.post(&path, job).await.is(201);
    let exact = format!("{path}?resourceVersion={version}&resourceVersionMatch=Exact");
    assert!(api.get(&exact).await.is(200).names().is_empty());
}

#[tokio::test]
async fn events_have_no_dependents_to_wait_for() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/events");
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "x"}, "involvedObject": {"namespace": ns}, "type": "Normal"
    });
    api.post(&path, event).await.is(201);
    api.delete(&format!("{path}/x?propagationPolicy=Foreground")).await.is(200);
    api.get(&format!("{path}/x")).await.is(404);
}

#[tokio::test]
async fn events_of_the_future_are_not_waited_for() {
    let api = Api::start();
    let ns = api.namespace().await;
    let future = "resourceVersion=999999999999999999";
    let reply = api.get(&format!("/api/v1/namespaces/{ns}/events?{future}")).await.is(504);
    assert_eq!(reply.header("retry-after"), None);
}

#[tokio::test]
async fn a_runtime_class_is_validated_when_it_changes_and_named_by_a_segment_of_a_path() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = "/apis/node.k8s.io/v1/runtimeclasses";
    let name = format!("{}-x", api.id);
    let class = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": "h"});
    api.post(path, class).await.is(201);
    api.discard(format!("{path}/{name}"));
    let patch = json!({"scheduling": {"nodeSelector": {"a": "a/b"}}});
    let refused = api.patch(&format!("{path}/{name}"), MERGE_PATCH, patch).await.is(422);
    assert!(refused.text_at("/message").contains("scheduling.nodeSelector: Invalid value: \"a/b\""));
    let mut body = pod("x");
    body["spec"]["runtimeClassName"] = json!("/a");
    let refused = api.post(&format!("/api/v1/namespaces/{ns}/pods"), body).await.is(500);
    assert_eq!(refused.text_at("/message"), "invalid resource name \"/a\": [may not contain '/']");
}

#[tokio::test]
async fn the_webhook_of_a_conversion_is_validated() {
    let api = Api::start();
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";
    let refused = async |conversion: Value| {
        let mut definition = widgets(&api);
        definition["spec"]["conversion"] = conversion;
        api.post(path, definition).await.is(422).at("/details/causes").as_array().unwrap().len()
    };
    let config = json!({"url": "https://localhost/x"});
    let webhook = json!({"clientConfig": config, "conversionReviewVersions": ["v1"]});
    assert_eq!(refused(json!({"strategy": "Odd", "webhook": webhook})).await, 3);
    let unknown = json!({"clientConfig": config, "conversionReviewVersions": ["a b"]});
    assert_eq!(refused(json!({"strategy": "Webhook", "webhook": unknown})).await, 2);
    let twice = json!({"clientConfig": config, "conversionReviewVersions": ["v1", "v1"]});
    assert_eq!(refused(json!({"strategy": "Webhook", "webhook": twice})).await, 1);
    for (config, causes) in [
        (json!({"url": "http://u@x/?q"}), 3),
        (json!({"url": "https://a b"}), 1),
        (json!({}), 1),
        (json!({"service": {"name": "", "namespace": "n", "path": "a//B"}}), 5),
    ] {
        let webhook = json!({"clientConfig": config, "conversionReviewVersions": ["v1"]});
        assert_eq!(refused(json!({"strategy": "Webhook", "webhook": webhook})).await, causes, "{config}");
    }
}

#[tokio::test]
async fn a_metric_of_a_container_names_a_resource_of_containers() {
    let api = Api::start();
    let ns = api.namespace().await;
    let metric = json!({"type": "ContainerResource", "containerResource": {
        "name": "v1", "container": "c", "target": {"type": "Utilization", "averageUtilization": 5}
    }});
    let body = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "x"},
        "spec": {"maxReplicas": 3, "metrics": [metric], "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}
    });
    let path = format!("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers");
    let causes = api.post(&path, body).await.is(422).at("/details/causes");
    let messages: Vec<&str> =
        causes.as_array().unwrap().iter().filter_map(|cause| cause["message"].as_str()).collect();
    assert_eq!(
        messages,
        [
            "Invalid value: \"v1\": must be a standard resource type or fully qualified",
            "Invalid value: \"v1\": must be a standard resource for containers"
        ]
    );
}

#[tokio::test]
async fn the_class_of_a_pod_cannot_be_left_out_and_a_gated_pod_is_not_bound() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    let mut body = pod("x");
    body["spec"]["priorityClassName"] = json!("system-node-critical");
    api.post(&path, body).await.is(201);
    api.put(&format!("{path}/x"), pod("x")).await.is(422);
    let mut body = pod("y");
    body["spec"]["schedulingGates"] = json!([{"name": "example.com/gate"}]);
    api.post(&path, body).await.is(201);
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "y"}, "target": {"kind": "Node", "name": "n"}});
    let refused = api.post(&format!("{path}/y/binding"), binding).await.is(409);
    assert!(refused.text_at("/message").ends_with("pod y has non-empty .spec.schedulingGates"));
}

#[tokio::test]
async fn the_namespace_in_a_path_is_that_of_a_refusal() {
    let api = Api::start();
    let user = api.impersonating("nobody", &[]);
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}});
    let refused = user.post("/api/v1/namespaces/none/namespaces", body).await.is(403);
    assert!(refused.text_at("/message").ends_with("in the namespace \"none\""));
}

#[tokio::test]
async fn an_apply_to_an_object_that_breaks_its_schema_names_the_first_manager() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/serviceaccounts");
    let account =
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}, "secrets": [{}]});
    api.post(&path, account).await.is(201);
    let configuration = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "x"}});
    let refused = api.patch(&format!("{path}/x?fieldManager=m"), APPLY, configuration).await.is(500);
    let message = refused.text_at("/message");
    assert!(
        message.starts_with("failed to create manager for existing fields: failed to convert new object ("),
        "{message}"
    );
}

#[tokio::test]
async fn equal_node_ports_stop_an_update_before_it_is_validated() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/services");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"type": "NodePort", "ports": [{"port": 80}]}});
    let created = api.post(&path, service).await.is(201);
    let port = created.at("/spec/ports/0/nodePort");
    let ports = json!({"spec": {"ports": [{"port": 80, "nodePort": port}, {"port": 81, "nodePort": port}]}});
    let refused = api.patch(&format!("{path}/x"), MERGE_PATCH, ports).await.is(500);
    assert_eq!(refused.text_at("/message"), format!("duplicate nodePort: {{TCP {port}}}"));
}

#[tokio::test]
async fn the_role_of_a_binding_for_the_whole_cluster_has_no_namespace() {
    let api = Api::start();
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterrolebindings"], "verbs": ["create"]}]);
    let (user, role) = (format!("{}-user", api.id), format!("{}-binder", api.id));
    let group = "/apis/rbac.authorization.k8s.io/v1";
    let version = "rbac.authorization.k8s.io/v1";
    let created =
        json!({"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": role}, "rules": rules});
    api.post(&format!("{group}/clusterroles"), created).await.is(201);
    api.discard(format!("{group}/clusterroles/{role}"));
    let binding = |name: &str, kind: &str, role: &str| {
        json!({
            "apiVersion": version, "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}]
        })
    };
    let bindings = format!("{group}/clusterrolebindings");
    api.post(&bindings, binding(&role, "ClusterRole", &role)).await.is(201);
    api.discard(format!("{bindings}/{role}"));
    let may = json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"resourceAttributes": {
        "group": "rbac.authorization.k8s.io", "resource": "clusterrolebindings", "verb": "create"
    }}});
    let as_user = api.impersonating(&user, &[]);
    // The real server follows roles with a watch.
    for _ in 0..200 {
        let review =
            as_user.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", may.clone()).await;
        if review.at("/status/allowed") == json!(true) {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    let refused = as_user.post(&bindings, binding(&format!("{}-x", api.id), "Role", "x")).await.is(400);
    assert_eq!(refused.text_at("/message"), "Namespace parameter required.");
}

#[tokio::test]
async fn null_does_not_replace_the_kind_that_a_body_names_first() {
    let api = Api::start();
    let ns = api.namespace().await;
    let body = r#"{"apiVersion":"v1","kind":"Other","kind":null,"metadata":{"name":"x"}}"#;
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    let refused = api.request(Method::POST, &path).body("application/json", body).send().await.is(400);
    assert!(refused.text_at("/message").contains("no kind \"Other\" is registered"));
}
