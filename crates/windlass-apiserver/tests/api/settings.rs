//! Settings of a server that change the served objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use expect_test::expect;
use serde_json::{Value, json};
use windlass_apiserver::{HealthCheck, Listen, Server};

use crate::harness::{Api, MERGE_PATCH, lines};

#[tokio::test]
async fn privileged_containers_are_refused_where_they_are_not_allowed() {
    // The real server is started without --allow-privileged.
    let mut api = Api::start();
    if !api.is_shared() {
        api = Api::embedded(&Server::builder().forbid_privileged().build().unwrap());
    }
    let ns = api.namespace().await;
    let _ = api
        .post(&format!("/api/v1/namespaces/{ns}/serviceaccounts"), json!({"metadata": {"name": "default"}}))
        .await;
    let container =
        |privileged: bool| json!({"name": "c", "image": "i", "securityContext": {"privileged": privileged}});
    let spec = |privileged: bool| json!({"containers": [container(privileged)], "initContainers": [{"name": "i", "image": "i"}]});
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let template = |privileged: bool| json!({"metadata": {"labels": {"a": "b"}}, "spec": spec(privileged)});
    let deployments = format!("/apis/apps/v1/namespaces/{ns}/deployments");
    let deployment = |privileged: bool| {
        let spec = json!({"selector": {"matchLabels": {"a": "b"}}, "template": template(privileged)});
        json!({"metadata": {"name": "d"}, "spec": spec})
    };
    let mut seen = vec![
        api.post(&pods, json!({"metadata": {"name": "p"}, "spec": spec(true)})).await.to_string(),
        api.post(&deployments, deployment(true)).await.to_string(),
    ];
    api.post(&deployments, deployment(false)).await.is(201);
    let change = json!({"spec": {"template": {"spec": {"containers": [container(true)]}}}});
    seen.push(api.patch(&format!("{deployments}/d"), MERGE_PATCH, change).await.to_string());
    expect![[r#"
        422 Invalid: Pod "p" is invalid: spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy
        kind="Pod" name="p"
        - FieldValueForbidden spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy
        422 Invalid: Deployment.apps "d" is invalid: spec.template.spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy
        group="apps" kind="Deployment" name="d"
        - FieldValueForbidden spec.template.spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy
        422 Invalid: Deployment.apps "d" is invalid: spec.template.spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy
        group="apps" kind="Deployment" name="d"
        - FieldValueForbidden spec.template.spec.containers[0].securityContext.privileged: Forbidden: disallowed by cluster policy
    "#]].assert_eq(&lines(&seen));
}

fn service(name: &str, address: &str) -> Value {
    let mut spec = json!({"ports": [{"port": 80}]});
    if !address.is_empty() {
        spec["clusterIP"] = json!(address);
    }
    json!({"metadata": {"name": name}, "spec": spec})
}

/// Returns the service range of a server, the address of the server's own service, and the error about an
/// address elsewhere.
async fn range(api: &Api, services: &str) -> Vec<String> {
    let range = api.get("/apis/networking.k8s.io/v1/servicecidrs/kubernetes").await.is(200);
    let own = api.get("/api/v1/namespaces/default/services/kubernetes").await.is(200);
    let given = api.post(services, service("a", "")).await.is(201).text_at("/spec/clusterIP");
    let address = own.text_at("/spec/clusterIP");
    assert_eq!(given.rsplit_once('.').unwrap().0, address.rsplit_once('.').unwrap().0);
    let other = api.post(services, service("b", "10.9.0.1")).await;
    let dry = api.post(&format!("{services}?dryRun=All"), service("b", "10.9.0.1")).await;
    vec![format!("{} {address}", range.at("/spec/cidrs")), other.to_string(), dry.to_string()]
}

#[tokio::test]
async fn services_get_addresses_of_the_default_range() {
    let api = Api::start();
    let services = format!("/api/v1/namespaces/{}/services", api.namespace().await);
    expect![[r#"
        ["10.0.0.0/24"] 10.0.0.1
        422 Invalid: Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.9.0.1"]: failed to allocate IP 10.9.0.1: the provided network does not match the current range
        kind="Service" name="b"
        - FieldValueInvalid spec.clusterIPs: Invalid value: ["10.9.0.1"]: failed to allocate IP 10.9.0.1: the provided network does not match the current range
        422 Invalid: Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.9.0.1"]: failed to allocate IP 10.9.0.1: the provided IP (10.9.0.1) is not in the valid range. The range of valid IPs is 10.0.0.0/24
        kind="Service" name="b"
        - FieldValueInvalid spec.clusterIPs: Invalid value: ["10.9.0.1"]: failed to allocate IP 10.9.0.1: the provided IP (10.9.0.1) is not in the valid range. The range of valid IPs is 10.0.0.0/24
    "#]].assert_eq(&lines(&range(&api, &services).await));
}

#[tokio::test]
async fn services_get_addresses_of_another_range() {
    let server = Server::builder().service_range("10.20.0.0/28".parse().unwrap()).build().unwrap();
    let api = Api::embedded(&server);
    let services = format!("/api/v1/namespaces/{}/services", api.namespace().await);
    let mut seen = range(&api, &services).await;
    for number in 0..12 {
        api.post(&services, service(&format!("s{number}"), "")).await.is(201);
    }
    seen.push(api.post(&services, service("too-many", "")).await.to_string());
    seen.push(api.post(&services, service("c", "10.20.0.15")).await.to_string());
    expect![[r#"
        ["10.20.0.0/28"] 10.20.0.1
        422 Invalid: Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.9.0.1"]: failed to allocate IP 10.9.0.1: the provided network does not match the current range
        kind="Service" name="b"
        - FieldValueInvalid spec.clusterIPs: Invalid value: ["10.9.0.1"]: failed to allocate IP 10.9.0.1: the provided network does not match the current range
        422 Invalid: Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.9.0.1"]: failed to allocate IP 10.9.0.1: the provided IP (10.9.0.1) is not in the valid range. The range of valid IPs is 10.20.0.0/28
        kind="Service" name="b"
        - FieldValueInvalid spec.clusterIPs: Invalid value: ["10.9.0.1"]: failed to allocate IP 10.9.0.1: the provided IP (10.9.0.1) is not in the valid range. The range of valid IPs is 10.20.0.0/28
        500 InternalError: Internal error occurred: failed to allocate a serviceIP: range is full
        - - -: failed to allocate a serviceIP: range is full
        422 Invalid: Service "c" is invalid: spec.clusterIPs: Invalid value: ["10.20.0.15"]: failed to allocate IP 10.20.0.15: the provided network does not match the current range
        kind="Service" name="c"
        - FieldValueInvalid spec.clusterIPs: Invalid value: ["10.20.0.15"]: failed to allocate IP 10.20.0.15: the provided network does not match the current range
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn the_advertised_address_is_in_the_endpoints() {
    let server = Server::builder().advertise_address([192, 0, 2, 7].into()).build().unwrap();
    let api = Api::listening(&server, Listen::port(0)).await;
    let endpoints = api.get("/api/v1/namespaces/default/endpoints/kubernetes").await.is(200);
    assert_eq!(endpoints.at("/subsets/0/addresses"), json!([{"ip": "192.0.2.7"}]));
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    let slice = api.get(&format!("{slices}/kubernetes")).await.is(200);
    assert_eq!(slice.at("/endpoints/0/addresses"), json!(["192.0.2.7"]));
    let port = slice.at("/ports/0/port");
    let leases = api.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases").await.json();
    let advertised = &leases["items"][0]["metadata"]["annotations"]["kubernetes.io/peer-advertise-address"];
    assert_eq!(*advertised, json!(format!("192.0.2.7:{port}")));
}

/// A check that counts its runs.
struct Counted(Arc<AtomicUsize>);

impl HealthCheck for Counted {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn check(&self) -> Result<(), String> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[tokio::test]
async fn a_health_check_runs_only_if_a_request_names_or_includes_the_check() {
    let runs = Arc::new(AtomicUsize::new(0));
    let server = Server::builder().health_check(Counted(Arc::clone(&runs))).build().unwrap();
    let api = Api::embedded(&server);
    for path in ["/readyz?exclude=slow", "/readyz/ping"] {
        api.get(path).await.is(200);
    }
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    for path in ["/readyz", "/readyz/slow"] {
        api.get(path).await.is(200);
    }
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

/// A check that always fails.
struct Ill;

impl HealthCheck for Ill {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn check(&self) -> Result<(), String> {
        Err("it is ill".to_owned())
    }
}

#[tokio::test]
async fn a_health_check_that_fails_makes_the_server_unready() {
    let server = Server::builder().health_check(Ill).build().unwrap();
    let api = Api::embedded(&server);
    let mut seen = Vec::new();
    for path in ["/readyz", "/livez?verbose", "/readyz/etcd", "/readyz/ping", "/readyz/nope"] {
        seen.push(format!("{path}: {}", api.get(path).await));
    }
    expect![[r#"
        /readyz: 500
        [+]ping ok
        [+]log ok
        [-]etcd failed: reason withheld
        readyz check failed

        /livez?verbose: 500
        [+]ping ok
        [+]log ok
        [-]etcd failed: reason withheld
        livez check failed

        /readyz/etcd: 500
        internal server error: it is ill

        /readyz/ping: 200
        ok
        /readyz/nope: 404
        404 page not found

    "#]]
    .assert_eq(&lines(&seen));
}

/// The managers of the fields of an object.
fn managers(object: &Value) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let shown = entries.into_iter().map(|mut entry| {
        entry.as_object_mut().unwrap().remove("time");
        entry
    });
    shown.collect()
}

#[tokio::test]
async fn the_objects_of_the_server_are_owned_by_it() {
    let api = Api::start_over_tls();
    let mut seen = Vec::new();
    for path in [
        "/api/v1/namespaces/default",
        "/api/v1/namespaces/default/services/kubernetes",
        "/api/v1/namespaces/default/endpoints/kubernetes",
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
        "/apis/networking.k8s.io/v1/servicecidrs/kubernetes",
        "/apis/networking.k8s.io/v1/ipaddresses/10.0.0.1",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/catch-all",
        "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations/exempt",
        "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical",
        "/apis/apiregistration.k8s.io/v1/apiservices/v1.apps",
        "/apis/apiregistration.k8s.io/v1/apiservices/v1.",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/cluster-admin",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cluster-admin",
        "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking",
    ] {
        let object = api.get(path).await.is(200).json();
        seen.push(format!("{}: {}", path.rsplit_once("/v1/").unwrap().1, managers(&object)));
    }
    let leases = api.get("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases").await.json();
    seen.push(format!("lease: {}", managers(&leases["items"][0])));
    expect![[r#"
        namespaces/default: [{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/metadata.name":{}}}},"manager":"kube-apiserver","operation":"Update"}]
        namespaces/default/services/kubernetes: [{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:component":{},"f:provider":{}}},"f:spec":{"f:clusterIP":{},"f:internalTrafficPolicy":{},"f:ipFamilyPolicy":{},"f:ports":{".":{},"k:{\"port\":443,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},"f:protocol":{},"f:targetPort":{}}},"f:sessionAffinity":{},"f:type":{}}},"manager":"kube-apiserver","operation":"Update"}]
        namespaces/default/endpoints/kubernetes: [{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:endpointslice.kubernetes.io/skip-mirror":{}}},"f:subsets":{}},"manager":"kube-apiserver","operation":"Update"}]
        namespaces/default/endpointslices/kubernetes: [{"apiVersion":"discovery.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:addressType":{},"f:endpoints":{},"f:metadata":{"f:labels":{".":{},"f:kubernetes.io/service-name":{}}},"f:ports":{}},"manager":"kube-apiserver","operation":"Update"}]
        servicecidrs/kubernetes: [{"apiVersion":"networking.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:status":{},"f:type":{}}}}},"manager":"kubernetes-service-cidr-controller","operation":"Apply","subresource":"status"},{"apiVersion":"networking.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:cidrs":{}}},"manager":"kube-apiserver","operation":"Update"}]
        ipaddresses/10.0.0.1: [{"apiVersion":"networking.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:ipaddress.kubernetes.io/ip-family":{},"f:ipaddress.kubernetes.io/managed-by":{}}},"f:spec":{"f:parentRef":{".":{},"f:name":{},"f:namespace":{},"f:resource":{}}}},"manager":"kube-apiserver","operation":"Update"}]
        flowschemas/catch-all: [{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{"k:{\"type\":\"Dangling\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}}}},"manager":"api-priority-and-fairness-config-consumer-v1","operation":"Apply","subresource":"status"},{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:apf.kubernetes.io/autoupdate-spec":{}}},"f:spec":{"f:distinguisherMethod":{".":{},"f:type":{}},"f:matchingPrecedence":{},"f:priorityLevelConfiguration":{"f:name":{}},"f:rules":{}}},"manager":"api-priority-and-fairness-config-producer-v1","operation":"Update"}]
        prioritylevelconfigurations/exempt: [{"apiVersion":"flowcontrol.apiserver.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:apf.kubernetes.io/autoupdate-spec":{}}},"f:spec":{"f:exempt":{".":{},"f:lendablePercent":{},"f:nominalConcurrencyShares":{}},"f:type":{}}},"manager":"api-priority-and-fairness-config-producer-v1","operation":"Update"}]
        priorityclasses/system-node-critical: [{"apiVersion":"scheduling.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:description":{},"f:preemptionPolicy":{},"f:value":{}},"manager":"kube-apiserver","operation":"Update"}]
        apiservices/v1.apps: [{"apiVersion":"apiregistration.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:kube-aggregator.kubernetes.io/automanaged":{}}},"f:spec":{"f:group":{},"f:groupPriorityMinimum":{},"f:version":{},"f:versionPriority":{}}},"manager":"kube-apiserver","operation":"Update"}]
        apiservices/v1.: [{"apiVersion":"apiregistration.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{".":{},"f:kube-aggregator.kubernetes.io/automanaged":{}}},"f:spec":{"f:groupPriorityMinimum":{},"f:version":{},"f:versionPriority":{}}},"manager":"kube-apiserver","operation":"Update"}]
        clusterroles/cluster-admin: [{"apiVersion":"rbac.authorization.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:rbac.authorization.kubernetes.io/autoupdate":{}},"f:labels":{".":{},"f:kubernetes.io/bootstrapping":{}}},"f:rules":{}},"manager":"kube-apiserver","operation":"Update"}]
        clusterroles/edit: [{"apiVersion":"rbac.authorization.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:aggregationRule":{".":{},"f:clusterRoleSelectors":{}},"f:metadata":{"f:annotations":{".":{},"f:rbac.authorization.kubernetes.io/autoupdate":{}},"f:labels":{".":{},"f:kubernetes.io/bootstrapping":{},"f:rbac.authorization.k8s.io/aggregate-to-admin":{}}}},"manager":"kube-apiserver","operation":"Update"}]
        clusterrolebindings/cluster-admin: [{"apiVersion":"rbac.authorization.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:rbac.authorization.kubernetes.io/autoupdate":{}},"f:labels":{".":{},"f:kubernetes.io/bootstrapping":{}}},"f:roleRef":{},"f:subjects":{}},"manager":"kube-apiserver","operation":"Update"}]
        namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking: [{"apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{".":{},"f:since":{}}},"manager":"kube-apiserver","operation":"Update"}]
        lease: [{"apiVersion":"coordination.k8s.io/v1","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:kubernetes.io/peer-advertise-address":{}},"f:labels":{".":{},"f:apiserver.kubernetes.io/identity":{},"f:kubernetes.io/hostname":{}}},"f:spec":{"f:holderIdentity":{},"f:leaseDurationSeconds":{},"f:renewTime":{}}},"manager":"kube-apiserver","operation":"Update"}]
    "#]].assert_eq(&lines(&seen));
}
