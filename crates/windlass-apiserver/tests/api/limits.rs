//! LimitRanges: default resources of containers, and limits of containers, pods and claims.

use std::time::{Duration, Instant};

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Api, MERGE_PATCH, deadline, lines};

async fn limit(api: &Api, ns: &str, name: &str, limits: Value) {
    let range = json!({"metadata": {"name": name}, "spec": {"limits": limits}});
    let path = format!("/api/v1/namespaces/{ns}/limitranges");
    api.post(&path, range).await.is(201);
    // The real server sees the limit range a moment later, and sets defaults from then on.
    let probe = pod("probe", json!([{"name": "a", "image": "x"}]), json!([]));
    let pods = format!("/api/v1/namespaces/{ns}/pods?dryRun=All");
    soon(api, async || api.post(&pods, probe.clone()).await.at("/spec/containers/0/resources") != json!({}))
        .await;
}

/// Asks a server that hears of changes later until the answer is yes; the embedded server knows them at once.
async fn soon(api: &Api, is_known: impl AsyncFn() -> bool) {
    let start = Instant::now();
    while !is_known().await {
        assert!(api.is_shared() && start.elapsed() < deadline(), "the change has no effect");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn pod(name: &str, containers: Value, init_containers: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": containers, "initContainers": init_containers}})
}

fn container(name: &str, requests: Value, limits: Value) -> Value {
    json!({"name": name, "image": "x", "resources": {"requests": requests, "limits": limits}})
}

#[tokio::test]
async fn containers_get_default_resources() {
    let api = Api::start();
    let ns = api.namespace().await;
    let limits = json!([{
        "type": "Container", "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}
    }]);
    limit(&api, &ns, "a", limits).await;
    let containers = json!([
        {"name": "none", "image": "x"},
        container("some", json!({"cpu": "1m"}), json!({"memory": "2Gi"})),
    ]);
    let created = api
        .post(
            &format!("/api/v1/namespaces/{ns}/pods"),
            pod("p", containers, json!([{"name": "init", "image": "x"}])),
        )
        .await
        .is(201);
    let mut seen = vec![created.at("/metadata/annotations").to_string()];
    for list in ["containers", "initContainers"] {
        for container in created.at(&format!("/spec/{list}")).as_array().unwrap() {
            seen.push(format!("{}: {}", container["name"], container["resources"]));
        }
    }
    expect![[r#"
        {"kubernetes.io/limit-ranger":"LimitRanger plugin set: cpu, memory request for container none; cpu, memory limit for container none; cpu limit for container some; cpu, memory request for init container init; cpu, memory limit for init container init"}
        "none": {"limits":{"cpu":"500m","memory":"1Gi"},"requests":{"cpu":"100m","memory":"1Gi"}}
        "some": {"limits":{"cpu":"500m","memory":"2Gi"},"requests":{"cpu":"1m","memory":"2Gi"}}
        "init": {"limits":{"cpu":"500m","memory":"1Gi"},"requests":{"cpu":"100m","memory":"1Gi"}}
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn pods_and_claims_are_held_to_limits() {
    let api = Api::start();
    let ns = api.namespace().await;
    let limits = json!([
        {"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "1"}, "maxLimitRequestRatio": {"cpu": "4"},
         "default": {"cpu": "400m"}, "defaultRequest": {"cpu": "200m"}},
        {"type": "Pod", "max": {"cpu": "1500m"}},
        {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}},
    ]);
    limit(&api, &ns, "a", limits).await;
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let mut seen = Vec::new();
    for (name, containers) in [
        ("fits", json!([{"name": "a", "image": "x"}])),
        ("small", json!([container("a", json!({"cpu": "50m"}), json!({"cpu": "200m"}))])),
        ("large", json!([container("a", json!({"cpu": "500m"}), json!({"cpu": "1100m"}))])),
        ("wide", json!([container("a", json!({"cpu": "100m"}), json!({"cpu": "1"}))])),
        (
            "together",
            json!([
                container("a", json!({"cpu": "800m"}), json!({"cpu": "800m"})),
                container("b", json!({"cpu": "800m"}), json!({"cpu": "800m"})),
            ]),
        ),
        ("both", json!([container("a", json!({"cpu": "10m"}), json!({"cpu": "2"}))])),
    ] {
        let mut reply = api.post(&pods, pod(name, containers, json!([]))).await.to_string();
        if reply.starts_with("201") {
            reply.truncate(3);
        }
        seen.push(format!("{name}: {reply}"));
    }
    for (name, size) in [("fits", "5Gi"), ("small", "1Mi"), ("large", "11Gi")] {
        let claim = json!({"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}
        }});
        let path = format!("/api/v1/namespaces/{ns}/persistentvolumeclaims");
        let mut reply = api.post(&path, claim).await.to_string();
        if reply.starts_with("201") {
            reply.truncate(3);
        }
        seen.push(format!("claim {name}: {reply}"));
    }
    expect![[r#"
        fits: 201
        small: 403 Forbidden: pods "small" is forbidden: minimum cpu usage per Container is 100m, but request is 50m
        kind="pods" name="small"
        large: 403 Forbidden: pods "large" is forbidden: maximum cpu usage per Container is 1, but limit is 1100m
        kind="pods" name="large"
        wide: 403 Forbidden: pods "wide" is forbidden: cpu max limit to request ratio per Container is 4, but provided ratio is 10.000000
        kind="pods" name="wide"
        together: 403 Forbidden: pods "together" is forbidden: maximum cpu usage per Pod is 1500m, but limit is 1600m
        kind="pods" name="together"
        both: 403 Forbidden: pods "both" is forbidden: [minimum cpu usage per Container is 100m, but request is 10m, maximum cpu usage per Container is 1, but limit is 2, cpu max limit to request ratio per Container is 4, but provided ratio is 200.000000, maximum cpu usage per Pod is 1500m, but limit is 2]
        kind="pods" name="both"
        claim fits: 201
        claim small: 403 Forbidden: persistentvolumeclaims "small" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi
        kind="persistentvolumeclaims" name="small"
        claim large: 403 Forbidden: persistentvolumeclaims "large" is forbidden: maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 11Gi
        kind="persistentvolumeclaims" name="large"
    "#]].assert_eq(&lines(&seen));
}

#[tokio::test]
async fn claims_grow_if_their_class_allows_it() {
    let api = Api::start();
    let ns = api.namespace().await;
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    for (name, expands) in [("grows", true), ("stays", false)] {
        let name = format!("{name}-{}", api.id);
        let class =
            json!({"metadata": {"name": name}, "provisioner": "x.test/y", "allowVolumeExpansion": expands});
        api.post(classes, class).await.is(201);
        api.discard(format!("{classes}/{name}"));
    }
    let claims = format!("/api/v1/namespaces/{ns}/persistentvolumeclaims");
    let mut seen = Vec::new();
    for (name, class) in [("a", "grows"), ("b", "stays"), ("c", "absent")] {
        let claim = json!({"metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": format!("{class}-{}", api.id),
        }});
        api.post(&claims, claim).await.is(201);
        let path = format!("{claims}/{name}");
        api.patch(&path, MERGE_PATCH, json!({"spec": {"volumeName": "v"}})).await.is(200);
        api.patch(&format!("{path}/status"), MERGE_PATCH, json!({"status": {"phase": "Bound"}}))
            .await
            .is(200);
        let more = json!({"spec": {"resources": {"requests": {"storage": "2Gi"}}}});
        if class == "grows" {
            let dry = format!("{path}?dryRun=All");
            soon(&api, async || api.patch(&dry, MERGE_PATCH, more.clone()).await.code == 200).await;
        }
        let mut reply = api.patch(&path, MERGE_PATCH, more).await.to_string();
        if reply.starts_with("200") {
            reply.truncate(3);
        }
        seen.push(format!("{class}: {reply}"));
    }
    expect![[r#"
        grows: 200
        stays: 403 Forbidden: persistentvolumeclaims "b" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize
        kind="persistentvolumeclaims" name="b"
        absent: 403 Forbidden: persistentvolumeclaims "c" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize
        kind="persistentvolumeclaims" name="c"
    "#]].assert_eq(&lines(&seen));
}
