//! Validation of the kinds' own fields.

use std::fmt::Write as _;

use expect_test::expect;
use serde_json::{Value, json};

use crate::fixtures::pod;
use crate::harness::{Api, MERGE_PATCH};

/// The replies to a create of each object, one below the other, with `x-NAME` for a generated name.
async fn created(api: &Api, path: &str, objects: impl IntoIterator<Item = Value>) -> String {
    let mut out = String::new();
    for object in objects {
        let is_named = object.pointer("/metadata/generateName").is_none();
        let reply = api.post(&format!("{path}?dryRun=All"), object).await;
        let shown = reply.to_string();
        let shown = if is_named { shown } else { shown.replace(&reply.text_at("/details/name"), "x-NAME") };
        writeln!(out, "{shown}").unwrap();
    }
    out
}

#[tokio::test]
async fn network_policies() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies");
    let policy =
        |rule: Value| json!({"metadata": {"name": "a"}, "spec": {"podSelector": {}, "ingress": [rule]}});
    let refused = created(
        &api,
        &path,
        [
            policy(json!({"from": [{}]})),
            policy(json!({"from": [{"podSelector": {}, "ipBlock": {"cidr": "10.0.0.0/8"}}]})),
            policy(json!({"from": [{"ipBlock": {"cidr": ""}}]})),
            policy(json!({"ports": [{"endPort": 5}]})),
            policy(json!({"ports": [{"port": 9, "endPort": 5}]})),
            policy(json!({"ports": [{"port": "http", "endPort": 5}]})),
            policy(json!({"ports": [{"port": 70000, "protocol": "ICMP"}]})),
        ],
    );
    expect![[r#"
        422 Invalid: NetworkPolicy.networking.k8s.io "a" is invalid: spec.ingress[0].from[0]: Required value: must specify a peer
        group="networking.k8s.io" kind="NetworkPolicy" name="a"
        - FieldValueRequired spec.ingress[0].from[0]: Required value: must specify a peer
        422 Invalid: NetworkPolicy.networking.k8s.io "a" is invalid: spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer
        group="networking.k8s.io" kind="NetworkPolicy" name="a"
        - FieldValueForbidden spec.ingress[0].from[0]: Forbidden: may not specify both ipBlock and another peer
        422 Invalid: NetworkPolicy.networking.k8s.io "a" is invalid: spec.ingress[0].from[0].ipBlock.cidr: Required value
        group="networking.k8s.io" kind="NetworkPolicy" name="a"
        - FieldValueRequired spec.ingress[0].from[0].ipBlock.cidr: Required value
        422 Invalid: NetworkPolicy.networking.k8s.io "a" is invalid: spec.ingress[0].ports[0].endPort: Invalid value: 5: may not be specified when `port` is not specified
        group="networking.k8s.io" kind="NetworkPolicy" name="a"
        - FieldValueInvalid spec.ingress[0].ports[0].endPort: Invalid value: 5: may not be specified when `port` is not specified
        422 Invalid: NetworkPolicy.networking.k8s.io "a" is invalid: spec.ingress[0].ports[0].endPort: Invalid value: 5: must be greater than or equal to `port`
        group="networking.k8s.io" kind="NetworkPolicy" name="a"
        - FieldValueInvalid spec.ingress[0].ports[0].endPort: Invalid value: 5: must be greater than or equal to `port`
        422 Invalid: NetworkPolicy.networking.k8s.io "a" is invalid: spec.ingress[0].ports[0].endPort: Invalid value: 5: may not be specified when `port` is non-numeric
        group="networking.k8s.io" kind="NetworkPolicy" name="a"
        - FieldValueInvalid spec.ingress[0].ports[0].endPort: Invalid value: 5: may not be specified when `port` is non-numeric
        422 Invalid: NetworkPolicy.networking.k8s.io "a" is invalid: [as below]
        group="networking.k8s.io" kind="NetworkPolicy" name="a"
        - FieldValueInvalid spec.ingress[0].ports[0].port: Invalid value: 70000: must be between 1 and 65535, inclusive
        - FieldValueNotSupported spec.ingress[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "TCP", "UDP", "SCTP"
    "#]].assert_eq(&refused.await);
    let fine =
        json!({"ports": [{"port": 5, "endPort": 9}], "from": [{"namespaceSelector": {}, "podSelector": {}}]});
    api.post(&path, policy(fine)).await.is(201);
}

#[tokio::test]
async fn endpoint_slices() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices");
    let slice = |kind: &str, address: &str| json!({"metadata": {"name": "a"}, "addressType": kind, "ports": [], "endpoints": [{"addresses": [address]}]});
    let refused = created(
        &api,
        &path,
        [
            slice("IPv4", "x"),
            slice("IPv4", "2001:db8::1"),
            slice("IPv6", "10.0.0.1"),
            slice("IPv4", "127.0.0.1"),
            slice("IPv4", "169.254.0.1"),
            slice("IPv4", "224.0.0.1"),
            slice("IPv6", "::"),
            slice("FQDN", "x"),
            slice("FQDN", "No.name"),
            json!({"metadata": {"name": "a"}, "addressType": "IPv4", "ports": [], "endpoints": [{"addresses": []}]}),
        ],
    );
    expect![[r#"
        422 Invalid: EndpointSlice.discovery.k8s.io "a" is invalid: endpoints[0].addresses[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
        group="discovery.k8s.io" kind="EndpointSlice" name="a"
        - FieldValueInvalid endpoints[0].addresses[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
        422 Invalid: EndpointSlice.discovery.k8s.io "a" is invalid: endpoints[0].addresses: Invalid value: "2001:db8::1": must be an IPv4 address
        group="discovery.k8s.io" kind="EndpointSlice" name="a"
        - FieldValueInvalid endpoints[0].addresses: Invalid value: "2001:db8::1": must be an IPv4 address
        422 Invalid: EndpointSlice.discovery.k8s.io "a" is invalid: endpoints[0].addresses: Invalid value: "10.0.0.1": must be an IPv6 address
        group="discovery.k8s.io" kind="EndpointSlice" name="a"
        - FieldValueInvalid endpoints[0].addresses: Invalid value: "10.0.0.1": must be an IPv6 address
        422 Invalid: EndpointSlice.discovery.k8s.io "a" is invalid: endpoints[0].addresses[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)
        group="discovery.k8s.io" kind="EndpointSlice" name="a"
        - FieldValueInvalid endpoints[0].addresses[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)
        422 Invalid: EndpointSlice.discovery.k8s.io "a" is invalid: endpoints[0].addresses[0]: Invalid value: "169.254.0.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)
        group="discovery.k8s.io" kind="EndpointSlice" name="a"
        - FieldValueInvalid endpoints[0].addresses[0]: Invalid value: "169.254.0.1": may not be in the link-local range (169.254.0.0/16, fe80::/10)
        422 Invalid: EndpointSlice.discovery.k8s.io "a" is invalid: endpoints[0].addresses[0]: Invalid value: "224.0.0.1": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)
        group="discovery.k8s.io" kind="EndpointSlice" name="a"
        - FieldValueInvalid endpoints[0].addresses[0]: Invalid value: "224.0.0.1": may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)
        422 Invalid: EndpointSlice.discovery.k8s.io "a" is invalid: endpoints[0].addresses[0]: Invalid value: "::": may not be unspecified (::)
        group="discovery.k8s.io" kind="EndpointSlice" name="a"
        - FieldValueInvalid endpoints[0].addresses[0]: Invalid value: "::": may not be unspecified (::)
        422 Invalid: EndpointSlice.discovery.k8s.io "a" is invalid: endpoints[0].addresses[0]: Invalid value: "x": should be a domain with at least two segments separated by dots
        group="discovery.k8s.io" kind="EndpointSlice" name="a"
        - FieldValueInvalid endpoints[0].addresses[0]: Invalid value: "x": should be a domain with at least two segments separated by dots
        422 Invalid: EndpointSlice.discovery.k8s.io "a" is invalid: endpoints[0].addresses[0]: Invalid value: "No.name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        group="discovery.k8s.io" kind="EndpointSlice" name="a"
        - FieldValueInvalid endpoints[0].addresses[0]: Invalid value: "No.name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        422 Invalid: EndpointSlice.discovery.k8s.io "a" is invalid: endpoints[0].addresses: Required value
        group="discovery.k8s.io" kind="EndpointSlice" name="a"
        - FieldValueRequired endpoints[0].addresses: Required value
    "#]].assert_eq(&refused.await);
    for (kind, address) in [("IPv4", "10.0.0.1"), ("IPv6", "2001:db8::1"), ("FQDN", "example.com")] {
        api.post(&format!("{path}?dryRun=All"), slice(kind, address)).await.is(201);
    }
}

#[tokio::test]
async fn ingresses_and_their_classes() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses");
    let backend = json!({"service": {"name": "s", "port": {"number": 80}}});
    let ingress = json!({"metadata": {"name": "a", "annotations": {"kubernetes.io/ingress.class": "x"}}, "spec": {
        "defaultBackend": backend}});
    let created_ingress = api.post(&path, ingress.clone()).await.is(201);
    assert!(
        created_ingress.warnings().iter().any(|warning| warning.contains("ingress.class")),
        "{created_ingress}"
    );
    let mut hosted = ingress;
    hosted["metadata"] = json!({"name": "b"});
    hosted["spec"]["rules"] = json!([{"host": "1.2.3.4"}]);
    expect![[r#"
        422 Invalid: Ingress.networking.k8s.io "b" is invalid: spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address
        group="networking.k8s.io" kind="Ingress" name="b"
        - FieldValueInvalid spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address
    "#]].assert_eq(&created(&api, &path, [hosted]).await);
    let status = json!({"status": {"loadBalancer": {"ingress": [{"ip": "x"}, {"hostname": "1.2.3.4"}]}}});
    api.patch(&format!("{path}/a/status"), MERGE_PATCH, status).await.shows(expect![[r#"
        422 Invalid: Ingress.networking.k8s.io "a" is invalid: [as below]
        group="networking.k8s.io" kind="Ingress" name="a"
        - FieldValueInvalid status.loadBalancer.ingress[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
        - FieldValueInvalid status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address"#]]);
    let class = json!({"metadata": {"name": "a"}, "spec": {"controller": "nodomain"}});
    let classes = "/apis/networking.k8s.io/v1/ingressclasses";
    let none = json!({"metadata": {"name": "a"}, "spec": {}});
    expect![[r#"
        422 Invalid: IngressClass.networking.k8s.io "a" is invalid: spec.controller: Invalid value: "nodomain": must be a domain-prefixed path (such as "acme.io/foo")
        group="networking.k8s.io" kind="IngressClass" name="a"
        - FieldValueInvalid spec.controller: Invalid value: "nodomain": must be a domain-prefixed path (such as "acme.io/foo")
        422 Invalid: IngressClass.networking.k8s.io "a" is invalid: spec.controller: Required value
        group="networking.k8s.io" kind="IngressClass" name="a"
        - FieldValueRequired spec.controller: Required value
    "#]].assert_eq(&created(&api, classes, [class, none]).await);
}

#[tokio::test]
async fn volumes_and_claims() {
    let api = Api::start();
    let ns = api.namespace().await;
    let modes = json!(["ReadWriteOncePod", "ReadWriteOnce"]);
    let volume = json!({"metadata": {"name": "a"}, "spec": {"accessModes": modes, "capacity": {"storage": "1Gi"},
        "hostPath": {"path": "/a/../b"}}});
    expect![[r#"
        422 Invalid: PersistentVolume "a" is invalid: [as below]
        kind="PersistentVolume" name="a"
        - FieldValueForbidden spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes
        - FieldValueInvalid spec.hostPath.path: Invalid value: "/a/../b": must not contain '..'
    "#]].assert_eq(&created(&api, "/api/v1/persistentvolumes", [volume]).await);
    let claims = format!("/api/v1/namespaces/{ns}/persistentvolumeclaims");
    let mut claim = json!({"metadata": {"name": "a"}, "spec": {"accessModes": modes, "resources": {
        "requests": {"storage": "1Gi"}}}});
    expect![[r#"
        422 Invalid: PersistentVolumeClaim "a" is invalid: spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes
        kind="PersistentVolumeClaim" name="a"
        - FieldValueForbidden spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes
    "#]].assert_eq(&created(&api, &claims, [claim.clone()]).await);
    claim["spec"]["accessModes"] = json!(["ReadWriteOnce"]);
    api.post(&claims, claim).await.is(201);
    let set = |class: &str| json!({"spec": {"storageClassName": class}});
    api.patch(&format!("{claims}/a"), MERGE_PATCH, set("fast")).await.is(200);
    api.patch(&format!("{claims}/a"), MERGE_PATCH, set("slow")).await.is(422);
}

#[tokio::test]
async fn nodes() {
    let api = Api::start();
    let name = format!("node-{}", api.id);
    let path = format!("/api/v1/nodes/{name}");
    let source = json!({"configMap": {"name": "a", "namespace": "b", "kubeletConfigKey": "c"}});
    let node = json!({"metadata": {"name": name}, "spec": {
        "configSource": source, "podCIDRs": ["10.0.0.0/24"], "providerID": "a://b"}});
    api.discard(path.clone());
    let node = api.post("/api/v1/nodes", node).await.is(201);
    assert_eq!(node.at("/spec/configSource"), Value::Null);
    let other =
        json!({"spec": {"podCIDRs": ["10.0.1.0/24"], "podCIDR": "10.0.1.0/24", "providerID": "c://d"}});
    api.patch(&path, MERGE_PATCH, other).await.shows(expect![[r#"
        422 Invalid: Node "node-ID" is invalid: [as below]
        kind="Node" name="node-ID"
        - FieldValueForbidden spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid
        - FieldValueInvalid spec.providerID: Invalid value: null: field cannot be modified once set"#]]);
}

#[tokio::test]
async fn cron_jobs() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/batch/v1/namespaces/{ns}/cronjobs");
    let cron_job = |schedule: &str, zone: &str| {
        json!({"metadata": {"name": "a"}, "spec": {"schedule": schedule, "timeZone": zone, "jobTemplate": {"spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}}}}}})
    };
    let refused = created(
        &api,
        &path,
        [
            cron_job("0 0 * * *", "Nowhere/Land"),
            cron_job("0 0 * * *", ""),
            cron_job("0 0 * * *", "local"),
            cron_job("TZ=UTC 0 0 * * *", "UTC"),
            cron_job("TZ=Nowhere @daily", "UTC"),
            cron_job("*/0 * * * *", "UTC"),
            cron_job("5-1 * * * *", "UTC"),
            cron_job("1-2-3 * * * *", "UTC"),
            cron_job("0 0 * foo *", "UTC"),
            cron_job("@every 5", "UTC"),
            cron_job("@every 5y", "UTC"),
        ],
    );
    expect![[r#"
        422 Invalid: CronJob.batch "a" is invalid: spec.timeZone: Invalid value: "Nowhere/Land": unknown time zone Nowhere/Land
        group="batch" kind="CronJob" name="a"
        - FieldValueInvalid spec.timeZone: Invalid value: "Nowhere/Land": unknown time zone Nowhere/Land
        422 Invalid: CronJob.batch "a" is invalid: spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string
        group="batch" kind="CronJob" name="a"
        - FieldValueInvalid spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string
        422 Invalid: CronJob.batch "a" is invalid: [as below]
        group="batch" kind="CronJob" name="a"
        - FieldValueInvalid spec.timeZone: Invalid value: "local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones
        - FieldValueInvalid spec.timeZone: Invalid value: "local": unknown time zone local
        422 Invalid: CronJob.batch "a" is invalid: spec.schedule: Invalid value: "TZ=UTC 0 0 * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead
        group="batch" kind="CronJob" name="a"
        - FieldValueInvalid spec.schedule: Invalid value: "TZ=UTC 0 0 * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead
        422 Invalid: CronJob.batch "a" is invalid: [as below]
        group="batch" kind="CronJob" name="a"
        - FieldValueInvalid spec.schedule: Invalid value: "TZ=Nowhere @daily": cannot use TZ or CRON_TZ in schedule, use timeZone field instead
        - FieldValueInvalid spec.schedule: Invalid value: "TZ=Nowhere @daily": provided bad location Nowhere: unknown time zone Nowhere
        422 Invalid: CronJob.batch "a" is invalid: spec.schedule: Invalid value: "*/0 * * * *": step of range should be a positive number: */0
        group="batch" kind="CronJob" name="a"
        - FieldValueInvalid spec.schedule: Invalid value: "*/0 * * * *": step of range should be a positive number: */0
        422 Invalid: CronJob.batch "a" is invalid: spec.schedule: Invalid value: "5-1 * * * *": beginning of range (5) beyond end of range (1): 5-1
        group="batch" kind="CronJob" name="a"
        - FieldValueInvalid spec.schedule: Invalid value: "5-1 * * * *": beginning of range (5) beyond end of range (1): 5-1
        422 Invalid: CronJob.batch "a" is invalid: spec.schedule: Invalid value: "1-2-3 * * * *": too many hyphens: 1-2-3
        group="batch" kind="CronJob" name="a"
        - FieldValueInvalid spec.schedule: Invalid value: "1-2-3 * * * *": too many hyphens: 1-2-3
        422 Invalid: CronJob.batch "a" is invalid: spec.schedule: Invalid value: "0 0 * foo *": failed to parse int from foo: strconv.Atoi: parsing "foo": invalid syntax
        group="batch" kind="CronJob" name="a"
        - FieldValueInvalid spec.schedule: Invalid value: "0 0 * foo *": failed to parse int from foo: strconv.Atoi: parsing "foo": invalid syntax
        422 Invalid: CronJob.batch "a" is invalid: spec.schedule: Invalid value: "@every 5": failed to parse duration @every 5: time: missing unit in duration "5"
        group="batch" kind="CronJob" name="a"
        - FieldValueInvalid spec.schedule: Invalid value: "@every 5": failed to parse duration @every 5: time: missing unit in duration "5"
        422 Invalid: CronJob.batch "a" is invalid: spec.schedule: Invalid value: "@every 5y": failed to parse duration @every 5y: time: unknown unit "y" in duration "5y"
        group="batch" kind="CronJob" name="a"
        - FieldValueInvalid spec.schedule: Invalid value: "@every 5y": failed to parse duration @every 5y: time: unknown unit "y" in duration "5y"
    "#]].assert_eq(&refused.await);
    api.post(&path, cron_job("0 0 * * *", "Europe/Berlin")).await.is(201);
}

#[tokio::test]
async fn controller_revisions() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/apps/v1/namespaces/{ns}/controllerrevisions");
    let revision =
        |number: i64, data: Value| json!({"metadata": {"name": "a"}, "revision": number, "data": data});
    let refused =
        created(&api, &path, [revision(-1, json!("x")), json!({"metadata": {"name": "a"}, "revision": 1})]);
    expect![[r#"
        422 Invalid: ControllerRevision.apps "a" is invalid: [as below]
        group="apps" kind="ControllerRevision" name="a"
        - FieldValueInvalid revision: Invalid value: -1: must be greater than or equal to 0
        - FieldValueRequired data: Required value: data must be a valid JSON object
        422 Invalid: ControllerRevision.apps "a" is invalid: data: Required value: data is mandatory
        group="apps" kind="ControllerRevision" name="a"
        - FieldValueRequired data: Required value: data is mandatory
    "#]]
    .assert_eq(&refused.await);
    api.post(&path, revision(1, json!({"a": 1}))).await.is(201);
    api.patch(&format!("{path}/a"), MERGE_PATCH, json!({"data": {"a": 2}})).await.is(422);
}

#[tokio::test]
async fn horizontal_pod_autoscalers() {
    let api = Api::start();
    let ns = api.namespace().await;
    let path = format!("/apis/autoscaling/v2/namespaces/{ns}/horizontalpodautoscalers");
    let autoscaler = |least: i64, most: i64| {
        json!({"metadata": {"name": "a"}, "spec": {"minReplicas": least, "maxReplicas": most,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}})
    };
    let refused = created(&api, &path, [autoscaler(2, 0), autoscaler(2, 1), autoscaler(1, -1)]);
    expect![[r#"
        422 Invalid: HorizontalPodAutoscaler.autoscaling "a" is invalid: [as below]
        group="autoscaling" kind="HorizontalPodAutoscaler" name="a"
        - FieldValueInvalid spec.maxReplicas: Invalid value: 0: must be greater than or equal to `minReplicas`
        - FieldValueRequired spec.maxReplicas: Required value
        422 Invalid: HorizontalPodAutoscaler.autoscaling "a" is invalid: spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`
        group="autoscaling" kind="HorizontalPodAutoscaler" name="a"
        - FieldValueInvalid spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`
        422 Invalid: HorizontalPodAutoscaler.autoscaling "a" is invalid: [as below]
        group="autoscaling" kind="HorizontalPodAutoscaler" name="a"
        - FieldValueInvalid spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1
        - FieldValueInvalid spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`
    "#]].assert_eq(&refused.await);
}

#[tokio::test]
async fn a_pod_has_the_preemption_policy_of_its_priority_class() {
    let api = Api::start();
    let ns = api.namespace().await;
    let pod = json!({"metadata": {"name": "a"}, "spec": {
        "preemptionPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}});
    let unnamed = json!({"spec": pod["spec"]});
    expect![[r#"
        403 Forbidden: pods "a" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name
        kind="pods" name="a"
        403 Forbidden: pods "Unknown" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name
        kind="pods" name="Unknown"
    "#]].assert_eq(&created(&api, &format!("/api/v1/namespaces/{ns}/pods"), [pod, unnamed]).await);
}

#[tokio::test]
async fn objects_of_other_servers_are_unknown() {
    let api = Api::start();
    let ns = api.namespace().await;
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace"});
    let path = format!("/api/v1/namespaces/{ns}/configmaps");
    expect![[r#"
        400 BadRequest: CustomResourceDefinition in version "v1" cannot be handled as a ConfigMap: no kind "CustomResourceDefinition" is registered for version "apiextensions.k8s.io/v1" in scheme "pkg/runtime/scheme.go:111"
        400 BadRequest: Namespace in version "v1" cannot be handled as a ConfigMap: converting (v1.Namespace) to (core.ConfigMap): unknown conversion
    "#]].assert_eq(&created(&api, &path, [definition, namespace]).await);
}

#[tokio::test]
async fn an_ip_address_is_named_by_its_canonical_form() {
    let api = Api::start();
    let path = "/apis/networking.k8s.io/v1/ipaddresses?dryRun=All";
    let address = |name: &str| {
        let parent = json!({"resource": "widgets", "group": "example.com", "name": "a"});
        json!({"metadata": {"name": name}, "spec": {"parentRef": parent}})
    };
    for name in ["192.168.77.1", "fe80::42:1dff:fe84:f9e2"] {
        api.post(path, address(name)).await.is(201);
    }
    for (name, problem) in [
        ("example.com", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        ("10.0.0.08", "must not have leading 0s"),
        ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
        ("FE80:0::1", r#"must be in canonical form ("fe80::1")"#),
    ] {
        let reply = api.post(path, address(name)).await;
        let expected = format!("metadata.name: Invalid value: \"{name}\": {problem}");
        assert!(reply.to_string().contains(&expected), "{reply}");
    }
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
async fn values_in_messages() {
    let api = Api::start();
    let ns = api.namespace().await;
    let limits = json!([{"type": "Container", "max": {"cpu": "1"}, "default": {"cpu": "3"}}]);
    let mut seen = created(
        &api,
        &format!("/api/v1/namespaces/{ns}/limitranges"),
        [json!({"metadata": {"name": "a"}, "spec": {"limits": limits}})],
    )
    .await;
    let services = format!("/api/v1/namespaces/{ns}/services");
    let service = json!({"metadata": {"name": "a"}, "spec": {"clusterIPs": ["ü"], "ports": [{"port": 80}]}});
    seen += &created(&api, &services, [service]).await;
    let group = format!("{}.example.com", api.id);
    let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "nullable": true}}});
    let spec = json!({"group": group, "scope": "Cluster", "names": {"plural": "as", "kind": "A"}, "versions": [version]});
    let definition = json!({"metadata": {"name": format!("as.{group}")}, "spec": spec});
    seen += &created(&api, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", [definition]).await;
    expect![[r#"
        422 Invalid: LimitRange "a" is invalid: [as below]
        kind="LimitRange" name="a"
        - FieldValueInvalid spec.limits[0].defaultRequest[cpu]: Invalid value: "3": default request value 3 is greater than max value 1
        - FieldValueInvalid spec.limits[0].default[cpu]: Invalid value: "1": default value 3 is greater than max value 1
        422 Invalid: Service "a" is invalid: [as below]
        kind="Service" name="a"
        - FieldValueInvalid spec.clusterIPs: Invalid value: ["ü"]: must be empty when `clusterIP` is not specified
        - FieldValueInvalid spec.clusterIPs[0]: Invalid value: "ü": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "as.ID.example.com" is invalid: spec.validation.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="as.ID.example.com"
        - FieldValueForbidden spec.validation.openAPIV3Schema.nullable: Forbidden: nullable cannot be true at the root
    "#]].assert_eq(&seen);
}

#[tokio::test]
async fn flow_schemas_and_priority_levels() {
    let api = Api::start();
    let group = "/apis/flowcontrol.apiserver.k8s.io/v1";
    let object = |spec: Value| json!({"metadata": {"name": "a"}, "spec": spec});
    let level = json!({"name": "x"});
    let subjects = json!([
        {"kind": "X"}, {"kind": "Group", "group": {"name": ""}, "user": {"name": "a"}},
        {"kind": "ServiceAccount", "serviceAccount": {"name": "A b", "namespace": ""}, "group": {"name": "a"}},
        {"kind": "ServiceAccount"}, {"kind": "User", "user": {"name": ""}, "serviceAccount": {"name": "*", "namespace": "a"}},
    ]);
    let resources = json!([
        {"verbs": [], "apiGroups": [], "resources": []},
        {"verbs": ["frob", "get"], "apiGroups": ["*", "a"], "resources": ["*", "b"], "namespaces": ["*", "c"]},
        {"verbs": ["*", "get"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["A b"]},
        {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": true},
    ]);
    let paths = json!([
        {"verbs": [], "nonResourceURLs": []}, {"verbs": ["get"], "nonResourceURLs": ["*", "/a"]},
        {"verbs": ["get"], "nonResourceURLs": ["", "/", "a", "/a//b", "/a/*", "/*/a", "/a*", "/a b"]},
    ]);
    let rules = json!([{}, {"subjects": subjects, "resourceRules": resources, "nonResourceRules": paths}]);
    let schemas = [
        json!({}),
        json!({"priorityLevelConfiguration": {"name": "A b"}, "matchingPrecedence": -1}),
        json!({"priorityLevelConfiguration": level, "matchingPrecedence": 10001, "distinguisherMethod": {"type": "x"}}),
        json!({"priorityLevelConfiguration": level, "matchingPrecedence": 1, "rules": rules}),
    ];
    let mut seen = created(&api, &format!("{group}/flowschemas"), schemas.map(object)).await;
    let queuing = |queues: i64, hand: i64| {
        let queuing = json!({"queues": queues, "handSize": hand});
        json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue", "queuing": queuing}}})
    };
    let levels = [
        json!({}),
        json!({"type": "x"}),
        json!({"type": "Exempt", "limited": {}, "exempt": {"nominalConcurrencyShares": -1, "lendablePercent": -1}}),
        json!({"type": "Limited", "exempt": {}}),
        json!({"type": "Limited", "limited": {
            "nominalConcurrencyShares": -1, "lendablePercent": 101, "borrowingLimitPercent": -1, "limitResponse": {"type": "x"},
        }}),
        json!({"type": "Limited", "limited": {"limitResponse": {}}}),
        json!({"type": "Limited", "limited": {"limitResponse": {"type": "Queue"}}}),
        json!({"type": "Limited", "limited": {"limitResponse": {"type": "Reject", "queuing": {}}}}),
        queuing(-1, -1),
        queuing(10_000_001, 70),
        queuing(4, 5),
        queuing(1024, 7),
    ];
    seen += &created(&api, &format!("{group}/prioritylevelconfigurations"), levels.map(object)).await;
    let zero =
        api.post(&format!("{group}/prioritylevelconfigurations?dryRun=All"), object(queuing(0, 0))).await;
    assert_eq!(zero.is(201).at("/spec/limited/limitResponse/queuing/queues"), 64);
    expect![[r#"
        422 Invalid: FlowSchema.flowcontrol.apiserver.k8s.io "a" is invalid: spec.priorityLevelConfiguration.name: Required value: must reference a priority level
        group="flowcontrol.apiserver.k8s.io" kind="FlowSchema" name="a"
        - FieldValueRequired spec.priorityLevelConfiguration.name: Required value: must reference a priority level
        422 Invalid: FlowSchema.flowcontrol.apiserver.k8s.io "a" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="FlowSchema" name="a"
        - FieldValueInvalid spec.matchingPrecedence: Invalid value: -1: must be a positive value
        - FieldValueInvalid spec.priorityLevelConfiguration.name: Invalid value: "A b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        422 Invalid: FlowSchema.flowcontrol.apiserver.k8s.io "a" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="FlowSchema" name="a"
        - FieldValueInvalid spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000
        - FieldValueNotSupported spec.distinguisherMethod.type: Unsupported value: {"Type":"x"}: supported values: "ByNamespace", "ByUser"
        422 Invalid: FlowSchema.flowcontrol.apiserver.k8s.io "a" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="FlowSchema" name="a"
        - FieldValueForbidden spec.rules[1].subjects[1].user: Forbidden: user is forbidden when subject kind is not 'User'
        - FieldValueForbidden spec.rules[1].subjects[2].group: Forbidden: group is forbidden when subject kind is not 'Group'
        - FieldValueForbidden spec.rules[1].subjects[4].serviceAccount: Forbidden: serviceAccount is forbidden when subject kind is not 'ServiceAccount'
        - FieldValueInvalid spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1
        - FieldValueInvalid spec.rules[1].nonResourceRules[1].nonResourceURLs: Invalid value: ["*","/a"]: if '*' is present, must not specify other non-resource URLs
        - FieldValueInvalid spec.rules[1].nonResourceRules[2].nonResourceURLs[0]: Invalid value: "": must not be empty
        - FieldValueInvalid spec.rules[1].nonResourceRules[2].nonResourceURLs[2]: Invalid value: "a": must start with slash
        - FieldValueInvalid spec.rules[1].nonResourceRules[2].nonResourceURLs[3]: Invalid value: "/a//b": must not contain double slash
        - FieldValueInvalid spec.rules[1].nonResourceRules[2].nonResourceURLs[5]: Invalid value: "/*/a": wildcard can only do suffix matching
        - FieldValueInvalid spec.rules[1].nonResourceRules[2].nonResourceURLs[6]: Invalid value: "/a*": wildcard can only do suffix matching
        - FieldValueInvalid spec.rules[1].nonResourceRules[2].nonResourceURLs[7]: Invalid value: "/a b": must not contain white-space
        - FieldValueInvalid spec.rules[1].resourceRules[1].apiGroups: Invalid value: ["*","a"]: if '*' is present, must not specify other api groups
        - FieldValueInvalid spec.rules[1].resourceRules[1].namespaces: Invalid value: ["*","c"]: if '*' is present, must not specify other namespaces
        - FieldValueInvalid spec.rules[1].resourceRules[1].resources: Invalid value: ["*","b"]: if '*' is present, must not specify other resources
        - FieldValueInvalid spec.rules[1].resourceRules[2].namespaces[0]: Invalid value: "A b": each member of this list must be '*' or a DNS-1123 label; a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
        - FieldValueInvalid spec.rules[1].resourceRules[2].verbs: Invalid value: ["*","get"]: if '*' is present, must not specify other verbs
        - FieldValueInvalid spec.rules[1].subjects[2].serviceAccount.name: Invalid value: "A b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
        - FieldValueNotSupported spec.rules[1].resourceRules[1].verbs: Unsupported value: ["frob","get"]: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"
        - FieldValueNotSupported spec.rules[1].subjects[0].kind: Unsupported value: "X": supported values: "Group", "ServiceAccount", "User"
        - FieldValueRequired spec.rules[0].subjects: Required value: subjects must contain at least one value
        - FieldValueRequired spec.rules[0]: Required value: at least one of resourceRules and nonResourceRules has to be non-empty
        - FieldValueRequired spec.rules[1].nonResourceRules[0].nonResourceURLs: Required value: nonResourceURLs must contain at least one value
        - FieldValueRequired spec.rules[1].nonResourceRules[0].verbs: Required value: verbs must contain at least one value
        - FieldValueRequired spec.rules[1].resourceRules[0].apiGroups: Required value: resource rules must supply at least one api group
        - FieldValueRequired spec.rules[1].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace
        - FieldValueRequired spec.rules[1].resourceRules[0].resources: Required value: resource rules must supply at least one resource
        - FieldValueRequired spec.rules[1].resourceRules[0].verbs: Required value: verbs must contain at least one value
        - FieldValueRequired spec.rules[1].subjects[1].group.name: Required value
        - FieldValueRequired spec.rules[1].subjects[2].serviceAccount.namespace: Required value: must specify namespace for service account
        - FieldValueRequired spec.rules[1].subjects[3].serviceAccount: Required value: serviceAccount is required when subject kind is 'ServiceAccount'
        - FieldValueRequired spec.rules[1].subjects[4].user.name: Required value
        422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "a" is invalid: spec.type: Required value
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="a"
        - FieldValueRequired spec.type: Required value
        422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "a" is invalid: spec.type: Unsupported value: "x": supported values: "Exempt", "Limited"
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="a"
        - FieldValueNotSupported spec.type: Unsupported value: "x": supported values: "Exempt", "Limited"
        422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "a" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="a"
        - FieldValueForbidden spec.limited: Forbidden
        - FieldValueInvalid spec.exempt.lendablePercent: Invalid value: -1: must be between 0 and 100, inclusive
        - FieldValueInvalid spec.exempt.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer
        - FieldValueInvalid spec.type: Invalid value: "Exempt": must be 'Exempt' if and only if `name` is 'exempt'
        - FieldValueRequired spec.limited.limitResponse.type: Required value
        422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "a" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="a"
        - FieldValueForbidden spec.exempt: Forbidden
        - FieldValueRequired spec.limited: Required value
        422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "a" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="a"
        - FieldValueInvalid spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer
        - FieldValueInvalid spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive
        - FieldValueInvalid spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer
        - FieldValueNotSupported spec.limited.limitResponse.type: Unsupported value: "x": supported values: "Queue", "Reject"
        422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "a" is invalid: spec.limited.limitResponse.type: Required value
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="a"
        - FieldValueRequired spec.limited.limitResponse.type: Required value
        422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "a" is invalid: spec.limited.limitResponse.queuing: Required value
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="a"
        - FieldValueRequired spec.limited.limitResponse.queuing: Required value
        422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "a" is invalid: spec.limited.limitResponse.queuing: Forbidden
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="a"
        - FieldValueForbidden spec.limited.limitResponse.queuing: Forbidden
        422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "a" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="a"
        - FieldValueInvalid spec.limited.limitResponse.queuing.handSize: Invalid value: -1: must be positive
        - FieldValueInvalid spec.limited.limitResponse.queuing.queues: Invalid value: -1: must be positive
        422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "a" is invalid: [as below]
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="a"
        - FieldValueInvalid spec.limited.limitResponse.queuing.handSize: Invalid value: 70: required entropy bits of deckSize 10000001 and handSize 70 should not be greater than 60
        - FieldValueInvalid spec.limited.limitResponse.queuing.queues: Invalid value: 10000001: must not be greater than 10000000
        422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "a" is invalid: spec.limited.limitResponse.queuing.handSize: Invalid value: 5: should not be greater than queues (4)
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="a"
        - FieldValueInvalid spec.limited.limitResponse.queuing.handSize: Invalid value: 5: should not be greater than queues (4)
        422 Invalid: PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io "a" is invalid: spec.limited.limitResponse.queuing.handSize: Invalid value: 7: required entropy bits of deckSize 1024 and handSize 7 should not be greater than 60
        group="flowcontrol.apiserver.k8s.io" kind="PriorityLevelConfiguration" name="a"
        - FieldValueInvalid spec.limited.limitResponse.queuing.handSize: Invalid value: 7: required entropy bits of deckSize 1024 and handSize 7 should not be greater than 60
    "#]].assert_eq(&seen);
}

#[tokio::test]
async fn a_generation_is_not_negative() {
    let api = Api::start();
    let ns = api.namespace().await;
    let map = json!({"metadata": {"name": "a", "generation": -5}});
    api.post(&format!("/api/v1/namespaces/{ns}/configmaps"), map).await.shows(expect![[r#"
        422 Invalid: ConfigMap "a" is invalid: metadata.generation: Invalid value: -5: must be greater than or equal to 0
        kind="ConfigMap" name="a"
        - FieldValueInvalid metadata.generation: Invalid value: -5: must be greater than or equal to 0"#]]);
}

#[tokio::test]
async fn the_name_of_a_runtime_class_of_a_pod_is_not_empty() {
    let api = Api::start();
    let ns = api.namespace().await;
    let spec = json!({"runtimeClassName": "", "containers": [{"name": "a", "image": "b"}]});
    let pod = json!({"metadata": {"name": "a"}, "spec": spec});
    api.post(&format!("/api/v1/namespaces/{ns}/pods?dryRun=All"), pod)
        .await
        .shows(expect!["500 -: resource name may not be empty"]);
}

#[tokio::test]
async fn absent_and_generated_names() {
    let api = Api::start();
    let ns = api.namespace().await;
    api.post(&format!("/api/v1/namespaces/{ns}/limitranges?dryRun=All"), json!({})).await.is(201);
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let definition = |metadata: Value| {
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let versions = json!([{"name": "v1", "served": true, "storage": true, "schema": schema}]);
        let names = json!({"plural": "xs", "kind": "X"});
        json!({
            "metadata": metadata,
            "spec": {"group": "x.test", "scope": "Cluster", "names": names, "versions": versions},
        })
    };
    let definitions = [json!({"generateName": "x-"}), json!({})].map(definition);
    let mut refused = created(&api, path, definitions).await;
    let service = |metadata: Value| {
        let spec =
            json!({"group": "x.test", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1});
        json!({"metadata": metadata, "spec": spec})
    };
    let services = [json!({"generateName": "x-"}), json!({})].map(service);
    refused += &created(&api, "/apis/apiregistration.k8s.io/v1/apiservices", services).await;
    expect![[r#"
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "x-NAME" is invalid: [as below]
        group="apiextensions.k8s.io" kind="CustomResourceDefinition" name="x-NAME"
        - FieldValueInvalid metadata.generateName: Invalid value: "x-": must be spec.names.plural+"."+spec.group
        - FieldValueInvalid metadata.name: Invalid value: "x-NAME": must be spec.names.plural+"."+spec.group
        422 Invalid: CustomResourceDefinition.apiextensions.k8s.io "" is invalid: metadata.name: Required value: name or generateName is required
        group="apiextensions.k8s.io" kind="CustomResourceDefinition"
        - FieldValueRequired metadata.name: Required value: name or generateName is required
        422 Invalid: APIService.apiregistration.k8s.io "x-NAME" is invalid: [as below]
        group="apiregistration.k8s.io" kind="APIService" name="x-NAME"
        - FieldValueInvalid metadata.generateName: Invalid value: "x-": must be `spec.version+"."+spec.group`: "v1.x.test"
        - FieldValueInvalid metadata.name: Invalid value: "x-NAME": must be `spec.version+"."+spec.group`: "v1.x.test"
        422 Invalid: APIService.apiregistration.k8s.io "" is invalid: metadata.name: Required value: name or generateName is required
        group="apiregistration.k8s.io" kind="APIService"
        - FieldValueRequired metadata.name: Required value: name or generateName is required
    "#]].assert_eq(&refused);
}

#[tokio::test]
async fn namespaces_of_objects_that_are_not_kept() {
    let api = Api::start();
    let ns = api.namespace().await;
    let other = json!({"metadata": {"name": "x", "namespace": "other"}, "target": {"name": "n"}});
    let path = format!("/api/v1/namespaces/{ns}/pods/x");
    let mut refused = String::new();
    for subresource in ["binding", "eviction"] {
        let reply = api.post(&format!("{path}/{subresource}"), other.clone()).await;
        writeln!(refused, "{reply}").unwrap();
    }
    let review = json!({
        "metadata": {"name": "x", "namespace": "other"},
        "spec": {"user": "u", "nonResourceAttributes": {"path": "/", "verb": "get"}},
    });
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let review = api.post(path, review).await.is(422);
    assert!(!review.text_at("/message").contains("other"), "{review}");
    expect![[r#"
        400 BadRequest: the namespace of the provided object does not match the namespace sent on the request
        400
        Warning: 299 - "unknown field \"target\"" BadRequest: the namespace of the provided object does not match the namespace sent on the request
    "#]].assert_eq(&refused);
}
