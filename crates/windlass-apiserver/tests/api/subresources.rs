//! The fields that a write to a subresource may change: all other fields keep the stored values.

use expect_test::expect;
use serde_json::{Value, json};

use crate::fixtures::{deployment, pod, widgets};
use crate::harness::{Api, JSON_PATCH, MERGE_PATCH, Reply, lines};

/// A pod with requests and limits, and the path of the test's pods.
async fn sized_pod(api: &Api) -> (String, Value) {
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}/pods");
    let mut body = pod("a");
    body["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "200m", "memory": "64Mi"}});
    let created = api.post(&path, body).await.is(201).json();
    (path, created)
}

/// Changes a pod in all that a client may wish to change.
fn forge(pod: &mut Value) {
    pod["metadata"]["labels"] = json!({"forged": "yes"});
    pod["metadata"]["annotations"] = json!({"forged": "yes"});
    pod["metadata"]["finalizers"] = json!(["example.com/forged"]);
    pod["spec"]["nodeName"] = json!("forged");
    pod["spec"]["containers"][0]["image"] = json!("forged");
    pod["spec"]["serviceAccountName"] = json!("forged");
    pod["status"]["phase"] = json!("Succeeded");
}

#[track_caller]
fn is_not_forged(reply: &Reply) {
    let mut object = reply.json();
    // The managers record the attempt, on the real server too.
    object["metadata"]["managedFields"].take();
    assert!(!object.to_string().contains("forged"), "{reply}");
    assert_eq!(reply.at("/status/phase"), "Pending");
}

#[tokio::test]
async fn ephemeral_containers_are_all_that_their_subresource_writes() {
    let api = Api::start();
    let (path, mut pod) = sized_pod(&api).await;
    forge(&mut pod);
    pod["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "busybox"}]);
    let written = api.put(&format!("{path}/a/ephemeralcontainers"), pod).await.is(200);
    is_not_forged(&written);
    assert_eq!(written.at("/spec/ephemeralContainers/0/name"), "debug");
    assert_eq!(written.at("/metadata/generation"), 2);
    assert_eq!(api.get(&format!("{path}/a")).await.json(), written.json());
    let patch = json!({"metadata": {"labels": {"forged": "yes"}}, "spec": {"nodeName": "forged"}});
    let patched = api.patch(&format!("{path}/a/ephemeralcontainers"), MERGE_PATCH, patch).await.is(200);
    is_not_forged(&patched);
    assert_eq!(patched.at("/metadata/resourceVersion"), written.at("/metadata/resourceVersion"));
}

#[tokio::test]
async fn an_ephemeral_container_has_no_resources_and_no_probes() {
    let api = Api::start();
    let (path, pod) = sized_pod(&api).await;
    let with = |containers: Value| {
        let mut pod = pod.clone();
        pod["spec"]["ephemeralContainers"] = containers;
        pod
    };
    let path = format!("{path}/a/ephemeralcontainers");
    let bad = with(json!([
        {"name": "d", "image": "busybox", "resources": {"limits": {"cpu": "1"}}, "ports": [{"containerPort": 80}]},
        {"name": "e", "image": "busybox", "livenessProbe": {"tcpSocket": {"port": 80}}, "targetContainerName": "none"},
        {"name": "main", "image": "busybox", "lifecycle": {"preStop": {"sleep": {"seconds": 1}}}},
        {"name": "e", "image": ""}
    ]));
    api.put(&path, bad).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: [as below]
        kind="Pod" name="a"
        - FieldValueDuplicate spec.ephemeralContainers[2].name: Duplicate value: "main"
        - FieldValueDuplicate spec.ephemeralContainers[3].name: Duplicate value: "e"
        - FieldValueForbidden spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container
        - FieldValueForbidden spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container
        - FieldValueForbidden spec.ephemeralContainers[1].livenessProbe: Forbidden: cannot be set for an Ephemeral Container
        - FieldValueForbidden spec.ephemeralContainers[2].lifecycle: Forbidden: cannot be set for an Ephemeral Container
        - FieldValueNotFound spec.ephemeralContainers[1].targetContainerName: Not found: "none"
        - FieldValueRequired spec.ephemeralContainers[3].image: Required value"#]]);
    api.put(&path, with(json!([{"name": "d", "image": "busybox", "targetContainerName": "main"}])))
        .await
        .is(200);
    let mut gone = pod.clone();
    gone["metadata"]["resourceVersion"] = json!("");
    api.put(&path, gone).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be removed

        kind="Pod" name="a"
        - FieldValueForbidden spec.ephemeralContainers: Forbidden: existing ephemeral containers "d" may not be removed
    "#]]);
}

#[tokio::test]
async fn resources_are_all_that_resize_writes() {
    let api = Api::start();
    let (path, mut pod) = sized_pod(&api).await;
    forge(&mut pod);
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("150m");
    let written = api.put(&format!("{path}/a/resize"), pod).await.is(200);
    is_not_forged(&written);
    assert_eq!(written.at("/spec/containers/0/resources/requests/cpu"), "150m");
    assert_eq!(written.at("/metadata/generation"), 2);
    let patch = json!([
        {"op": "replace", "path": "/spec/containers/0/resources/limits/memory", "value": "128Mi"},
        {"op": "add", "path": "/metadata/labels", "value": {"forged": "yes"}}
    ]);
    let patched = api.patch(&format!("{path}/a/resize"), JSON_PATCH, patch).await.is(200);
    is_not_forged(&patched);
    assert_eq!(patched.at("/spec/containers/0/resources/limits/memory"), "128Mi");
}

#[tokio::test]
async fn a_resize_is_validated() {
    let api = Api::start();
    let (path, pod) = sized_pod(&api).await;
    let resize = async |change: &dyn Fn(&mut Value)| {
        let mut pod = pod.clone();
        change(&mut pod);
        api.put(&format!("{path}/a/resize"), pod).await
    };
    let container = "/spec/containers/0";
    let at = |pod: &mut Value, below: &str, value: Value| {
        *pod.pointer_mut(&format!("{container}{below}")).unwrap() = value;
    };
    resize(&|pod| {
        at(pod, "/resources", json!({"limits": {"cpu": "200m", "memory": "64Mi"}, "requests": {"cpu": "200m", "memory": "64Mi"}}));
    })
    .await
    .shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing
        kind="Pod" name="a"
        - FieldValueInvalid spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing"#]]);
    resize(&|pod| at(pod, "/resources", json!({"requests": {"cpu": "100m"}}))).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: [as below]
        kind="Pod" name="a"
        - FieldValueForbidden spec.containers[0].resources.limits: Forbidden: resource limits cannot be removed
        - FieldValueForbidden spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"#]]);
    resize(&|pod| at(pod, "/resources/requests/cpu", json!("300m"))).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec.containers[0].resources.requests: Invalid value: "300m": must be less than or equal to cpu limit of 200m
        kind="Pod" name="a"
        - FieldValueInvalid spec.containers[0].resources.requests: Invalid value: "300m": must be less than or equal to cpu limit of 200m"#]]);
    resize(&|pod| {
        at(pod, "/resources/limits", json!({"cpu": "200m", "memory": "64Mi", "ephemeral-storage": "1Gi"}));
    })
    .await
    .shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec: Forbidden: only cpu and memory resources are mutable
        kind="Pod" name="a"
        - FieldValueForbidden spec: Forbidden: only cpu and memory resources are mutable"#]]);
    resize(&|pod| at(pod, "/name", json!("other"))).await.shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize
        kind="Pod" name="a"
        - FieldValueForbidden spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize"#]]);
    resize(&|pod| {
        let other = json!({"name": "other", "image": "nginx"});
        pod["spec"]["containers"].as_array_mut().unwrap().push(other);
    })
    .await
    .shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec.containers: Forbidden: containers may not be added or removed on resize
        kind="Pod" name="a"
        - FieldValueForbidden spec.containers: Forbidden: containers may not be added or removed on resize"#]]);
    resize(&|pod| {
        pod["spec"]["containers"][0]["resizePolicy"] =
            json!([{"resourceName": "cpu", "restartPolicy": "NotRequired"}]);
    })
    .await
    .shows(expect![[r#"
        422 Invalid: Pod "a" is invalid: spec: Forbidden: only cpu and memory resources are mutable
        kind="Pod" name="a"
        - FieldValueForbidden spec: Forbidden: only cpu and memory resources are mutable"#]]);
}

#[tokio::test]
async fn what_a_write_to_status_takes_of_the_metadata_depends_on_the_kind() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.crd(widgets(&api)).await;
    let group = format!("{}.example.com", api.id);
    let schema = json!({"metadata": {"name": format!("s-{}", api.id)}, "spec": {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 9999}});
    let schemas = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    api.post(schemas, schema).await.is(201);
    api.discard(format!("{schemas}/s-{}", api.id));
    let (pods, deployments) =
        (format!("/api/v1/namespaces/{ns}/pods"), format!("/apis/apps/v1/namespaces/{ns}/deployments"));
    api.post(&pods, pod("a")).await.is(201);
    api.post(&deployments, deployment("a")).await.is(201);
    let patch = json!({"metadata": {
        "labels": {"l": "v"}, "annotations": {"a": "v"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "y"}]
    }});
    let mut seen = Vec::new();
    for path in [
        format!("{pods}/a"),
        format!("{deployments}/a"),
        format!("{schemas}/s-{}", api.id),
        format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{group}"),
    ] {
        let written = api.patch(&format!("{path}/status"), MERGE_PATCH, patch.clone()).await.is(200);
        let kind = written.text_at("/kind");
        let has = |pointer: &str| written.json().pointer(pointer).is_some();
        let labels = has("/metadata/labels/l");
        let annotations = has("/metadata/annotations/a");
        let owners = has("/metadata/ownerReferences");
        seen.push(format!("{kind}: labels {labels}, annotations {annotations}, owners {owners}"));
    }
    expect![[r#"
        Pod: labels true, annotations true, owners false
        Deployment: labels false, annotations true, owners true
        FlowSchema: labels false, annotations false, owners false
        CustomResourceDefinition: labels true, annotations true, owners true
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn finalize_writes_the_finalizers_of_a_namespace() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}");
    let mut body = api.get(&path).await.json();
    body["metadata"]["labels"]["l"] = json!("v");
    body["spec"]["finalizers"] = json!(["kubernetes", "example.com/mine"]);
    body["status"] = json!({"phase": "Terminating"});
    let written = api.put(&format!("{path}/finalize"), body.clone()).await.is(200);
    assert_eq!(written.at("/spec/finalizers"), json!(["kubernetes", "example.com/mine"]));
    assert_eq!(written.at("/status/phase"), "Active");
    assert_eq!(written.at("/metadata/labels/l"), "v");
    body["metadata"]["resourceVersion"] = written.at("/metadata/resourceVersion");
    body["spec"]["finalizers"] = json!(["kubernetes"]);
    let updated = api.put(&path, body.clone()).await.is(200);
    assert_eq!(updated.at("/spec/finalizers"), json!(["kubernetes", "example.com/mine"]), "not by an update");
    body["metadata"]["resourceVersion"] = updated.at("/metadata/resourceVersion");
    api.put(&format!("{path}/finalize"), body).await.is(200);
}

#[tokio::test]
async fn a_scale_is_read_before_it_is_written() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    api.post(&path, deployment("a")).await.is(201);
    let scale = format!("{path}/a/scale");
    let before = api.get(&scale).await.is(200).at("/spec/replicas");
    api.put(&scale, json!({"metadata": {"name": "a"}, "spec": {"replicas": "2"}})).await.shows(expect![[r#"400 BadRequest: Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32"#]]);
    api.put(&scale, json!({"spec": {"replicas": 2}})).await.shows(expect![
        "400 BadRequest: the name of the object (a based on URL) was undeterminable: name must be provided"
    ]);
    api.put(&scale, json!({"metadata": {"name": "b"}, "spec": {"replicas": 2}}))
        .await
        .shows(expect!["400 BadRequest: the name of the object (b) does not match the name on the URL (a)"]);
    api.put(&format!("{path}/none/scale"), json!({"spec": {"replicas": 2}})).await.is(400);
    let patched = api.patch(&scale, MERGE_PATCH, json!({"spec": {"replicas": "2"}})).await.is(422);
    assert_eq!(patched.text_at("/details/causes/0/field"), "patch");
    assert_eq!(api.get(&scale).await.at("/spec/replicas"), before);
}

#[tokio::test]
async fn a_pod_gets_the_labels_of_the_binding_and_the_zone_of_the_node() {
    let api = Api::start();
    let ns = api.namespace().await;
    let node = format!("node-{}", api.id);
    let (zone, region) = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region");
    let labels = json!({zone: "a", region: "r", "disk": "ssd"});
    api.post("/api/v1/nodes", json!({"metadata": {"name": node, "labels": labels}})).await.is(201);
    api.discard(format!("/api/v1/nodes/{node}"));
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let pod = |name: &str, node: Value| {
        let metadata = json!({"name": name, "labels": {"app": "x", zone: "b"}});
        json!({"metadata": metadata, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "x"}]}})
    };
    api.post(&pods, pod("bound", Value::Null)).await.is(201);
    let binding = json!({
        "metadata": {"name": "bound", "labels": {"own": "y"}}, "target": {"kind": "Node", "name": node},
    });
    api.post(&format!("{pods}/bound/binding"), binding).await.is(201);
    let expected = json!({"app": "x", "own": "y", zone: "a", region: "r"});
    assert_eq!(api.get(&format!("{pods}/bound")).await.at("/metadata/labels"), expected);
    let expected = json!({"app": "x", zone: "a", region: "r"});
    assert_eq!(api.post(&pods, pod("placed", json!(node))).await.at("/metadata/labels"), expected);
}

#[tokio::test]
async fn requests_that_are_passed_on_are_checked() {
    let api = Api::start();
    let ns = api.namespace().await;
    let node = format!("node-{}", api.id);
    api.post("/api/v1/nodes", json!({"metadata": {"name": node}})).await.is(201);
    api.discard(format!("/api/v1/nodes/{node}"));
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let on = |name: &str, node: &str, containers: &[&str]| {
        let containers: Vec<_> = containers.iter().map(|name| json!({"name": name, "image": "x"})).collect();
        json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": containers}})
    };
    for pod in [
        on("no-host", "", &["c"]),
        on("no-node", "nox", &["c"]),
        on("two", &node, &["c", "d"]),
        on("one", &node, &["c"]),
    ] {
        api.post(&pods, pod).await.is(201);
    }
    let services = format!("/api/v1/namespaces/{ns}/services");
    api.post(&services, json!({"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})).await.is(201);
    let mut seen = Vec::new();
    for path in [
        "pods/none/exec",
        "pods/none/proxy/a",
        "pods/no-host/exec?command=ls&stdout=1",
        "pods/no-host/portforward",
        "pods/no-host/proxy",
        "pods/no-node/attach",
        "pods/two/exec",
        "pods/two/exec?container=x",
        "pods/one/exec",
        "pods/one/portforward",
        "services/none/proxy",
        "services/none:80/proxy",
        "services/a/proxy/x",
        "services/a:x/proxy/x",
        "services/a:81/proxy",
    ] {
        let reply = api.get(&format!("/api/v1/namespaces/{ns}/{path}")).await;
        seen.push(format!("{path}: {reply}"));
    }
    seen.push(format!("{}", api.get("/api/v1/nodes/none/proxy").await));
    seen.push(format!("{}", api.put(&format!("{pods}/one/exec"), json!({})).await));
    expect![[r#"
        pods/none/exec: 404 NotFound: pods "none" not found
        kind="pods" name="none"
        pods/none/proxy/a: 404 NotFound: pods "none" not found
        kind="pods" name="none"
        pods/no-host/exec?command=ls&stdout=1: 400 BadRequest: pod no-host does not have a host assigned
        pods/no-host/portforward: 400 BadRequest: pod no-host does not have a host assigned
        pods/no-host/proxy: 400 BadRequest: address not allowed
        pods/no-node/attach: 404 NotFound: pods "nox" not found
        kind="pods" name="nox"
        pods/two/exec: 400 BadRequest: a container name must be specified for pod two, choose one of: [c d]
        pods/two/exec?container=x: 400 BadRequest: container x is not valid for pod two
        pods/one/exec: 500 -: no preferred addresses found; known addresses: []
        pods/one/portforward: 500 -: no preferred addresses found; known addresses: []
        services/none/proxy: 503 ServiceUnavailable: no endpoints available for service "none"
        services/none:80/proxy: 404 NotFound: services "none" not found
        kind="services" name="none"
        services/a/proxy/x: 503 ServiceUnavailable: no endpoints available for service "a"
        services/a:x/proxy/x: 503 ServiceUnavailable: no endpoints available for service "a"
        services/a:81/proxy: 503 ServiceUnavailable: no service port 81 found for service "a"
        404 NotFound: nodes "none" not found
        kind="nodes" name="none"
        405 MethodNotAllowed: the server does not allow this method on the requested resource
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_body_of_another_kind_than_the_subresource_is_refused() {
    let api = Api::start();
    let ns = api.namespace().await;
    let mut seen = Vec::new();
    for path in ["pods/a/eviction", "pods/a/binding", "bindings", "serviceaccounts/a/token"] {
        for body in [
            json!({"apiVersion": "v1", "kind": "ConfigMap"}),
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": []}),
            json!({"apiVersion": "v1", "kind": "List"}),
            json!({"apiVersion": "a/b/c", "kind": "ConfigMap"}),
            json!({"apiVersion": 5, "kind": "ConfigMap"}),
        ] {
            let reply = api.post(&format!("/api/v1/namespaces/{ns}/{path}?dryRun=All"), body).await;
            seen.push(format!("{path}: {reply}"));
        }
    }
    expect![[r#"
        pods/a/eviction: 400 BadRequest: ConfigMap in version "v1" cannot be handled as a Eviction: converting (v1.ConfigMap) to (policy.Eviction): unknown conversion
        pods/a/eviction: 400 BadRequest: ConfigMap in version "v1" cannot be handled as a Eviction: json: cannot unmarshal array into Go struct field ConfigMap.metadata of type v1.ObjectMeta
        pods/a/eviction: 400 BadRequest: List in version "v1" cannot be handled as a Eviction: converting (v1.List) to (policy.Eviction): unknown conversion
        pods/a/eviction: 400 BadRequest: the object provided is unrecognized (must be of type Eviction): unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)
        pods/a/eviction: 400 BadRequest: the object provided is unrecognized (must be of type Eviction): couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string ({"apiVersion":5,"kind":"Config ...)
        pods/a/binding: 400 BadRequest: ConfigMap in version "v1" cannot be handled as a Binding: converting (v1.ConfigMap) to (core.Binding): unknown conversion
        pods/a/binding: 400 BadRequest: ConfigMap in version "v1" cannot be handled as a Binding: json: cannot unmarshal array into Go struct field ConfigMap.metadata of type v1.ObjectMeta
        pods/a/binding: 400 BadRequest: List in version "v1" cannot be handled as a Binding: converting (v1.List) to (core.Binding): unknown conversion
        pods/a/binding: 400 BadRequest: the object provided is unrecognized (must be of type Binding): unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)
        pods/a/binding: 400 BadRequest: the object provided is unrecognized (must be of type Binding): couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string ({"apiVersion":5,"kind":"Config ...)
        bindings: 400 BadRequest: ConfigMap in version "v1" cannot be handled as a Binding: converting (v1.ConfigMap) to (core.Binding): unknown conversion
        bindings: 400 BadRequest: ConfigMap in version "v1" cannot be handled as a Binding: json: cannot unmarshal array into Go struct field ConfigMap.metadata of type v1.ObjectMeta
        bindings: 400 BadRequest: List in version "v1" cannot be handled as a Binding: converting (v1.List) to (core.Binding): unknown conversion
        bindings: 400 BadRequest: the object provided is unrecognized (must be of type Binding): unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)
        bindings: 400 BadRequest: the object provided is unrecognized (must be of type Binding): couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string ({"apiVersion":5,"kind":"Config ...)
        serviceaccounts/a/token: 400 BadRequest: ConfigMap in version "v1" cannot be handled as a TokenRequest: converting (v1.ConfigMap) to (authentication.TokenRequest): unknown conversion
        serviceaccounts/a/token: 400 BadRequest: ConfigMap in version "v1" cannot be handled as a TokenRequest: json: cannot unmarshal array into Go struct field ConfigMap.metadata of type v1.ObjectMeta
        serviceaccounts/a/token: 400 BadRequest: List in version "v1" cannot be handled as a TokenRequest: converting (v1.List) to (authentication.TokenRequest): unknown conversion
        serviceaccounts/a/token: 400 BadRequest: the object provided is unrecognized (must be of type TokenRequest): unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c","kind":" ...)
        serviceaccounts/a/token: 400 BadRequest: the object provided is unrecognized (must be of type TokenRequest): couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .apiVersion of type string ({"apiVersion":5,"kind":"Config ...)
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn the_body_of_a_subresource_has_a_known_version() {
    let api = Api::start();
    let ns = api.namespace().await;
    let core = format!("/api/v1/namespaces/{ns}");
    for (path, version, kind) in [
        ("serviceaccounts/a/token", "authentication.k8s.io/v1beta1", "TokenRequest"),
        ("pods/a/eviction", "policy/v2", "Eviction"),
        ("pods/a/binding", "v2", "Binding"),
        ("bindings", "v2", "Binding"),
    ] {
        for body in [json!({"apiVersion": version, "kind": kind}), json!({"apiVersion": version})] {
            let reply = api.post(&format!("{core}/{path}"), body).await.is(400);
            let short = version.rsplit('/').next().unwrap();
            let message = format!(
                "{kind} in version \"{short}\" cannot be handled as a {kind}: no kind \"{kind}\" is registered for version \"{version}\" in scheme \"pkg/runtime/scheme.go:111\""
            );
            assert_eq!(reply.text_at("/message"), message);
        }
    }
    let eviction = json!({"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": "a"}});
    api.post(&format!("{core}/pods/a/eviction"), eviction).await.is(404);
}
