//! ResourceQuota: what admission counts and refuses. The tests write the status themselves, as the quota controller would.

use std::time::Instant;

use expect_test::expect;
use serde_json::{Value, json};

use crate::harness::{Api, MERGE_PATCH, Reply, deadline, lines};

/// Creates a quota with a status of no usage, and waits until the server knows the quota.
async fn quota(api: &Api, ns: &str, name: &str, spec: Value) -> String {
    let quotas = format!("/api/v1/namespaces/{ns}/resourcequotas");
    let mut object =
        api.post(&quotas, json!({"metadata": {"name": name}, "spec": spec})).await.is(201).json();
    let hard = object["spec"]["hard"].clone();
    let names = hard.as_object().unwrap().keys();
    let used: Value = names.map(|name| (name.clone(), json!("0"))).collect::<serde_json::Map<_, _>>().into();
    object["status"] = json!({"hard": hard, "used": used});
    let path = format!("{quotas}/{name}");
    api.put(&format!("{path}/status"), object).await.is(200);
    path
}

/// Repeats a dry run until a quota refuses it: the real server hears of quotas a moment later.
async fn refused(api: &Api, path: &str, object: Value) -> Reply {
    let start = Instant::now();
    loop {
        let reply = api.post(&format!("{path}?dryRun=All"), object.clone()).await;
        if reply.code == 403 {
            return reply;
        }
        assert!(start.elapsed() < deadline(), "never refused: {reply}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn pod(name: &str, requests: Value) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}
    })
}

fn used(reply: &Reply) -> Value {
    reply.at("/status/used")
}

#[tokio::test]
async fn a_quota_without_usage_refuses_what_it_limits() {
    let api = Api::start();
    let ns = api.namespace().await;
    let quotas = format!("/api/v1/namespaces/{ns}/resourcequotas");
    let limits = json!({"configmaps": "5", "count/configmaps": "5", "secrets": "1"});
    let object = json!({"metadata": {"name": "a"}, "spec": {"hard": limits}});
    api.post(&quotas, object).await.is(201);
    let status = json!({"status": {"hard": limits, "used": {"secrets": "0"}}});
    api.patch(&format!("{quotas}/a/status"), MERGE_PATCH, status).await.is(200);
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    refused(&api, &maps, json!({"metadata": {"name": "m"}})).await.shows(expect![[r#"
        403 Forbidden: configmaps "m" is forbidden: status unknown for quota: a, resources: configmaps,count/configmaps
        kind="configmaps" name="m""#]]);
    let secrets = format!("/api/v1/namespaces/{ns}/secrets");
    api.post(&secrets, json!({"metadata": {"name": "s"}})).await.is(201);
}

#[tokio::test]
async fn objects_are_counted_as_they_are_created() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hard = json!({"configmaps": "2", "count/leases.coordination.k8s.io": "1"});
    let path = quota(&api, &ns, "a", json!({"hard": hard})).await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    let counted = |reply: &Reply| used(reply)["configmaps"] != "0";
    let start = Instant::now();
    // The real server hears of the quota a moment later.
    while api.post(&maps, json!({"metadata": {"generateName": "early-"}})).await.is(201).code == 201
        && !counted(&api.get(&path).await)
    {
        assert!(start.elapsed() < deadline());
    }
    api.post(&maps, json!({"metadata": {"name": "second"}})).await.is(201);
    let mut seen = vec![used(&api.get(&path).await).to_string()];
    let leases = format!("/apis/coordination.k8s.io/v1/namespaces/{ns}/leases");
    api.post(&leases, json!({"metadata": {"name": "a"}})).await.is(201);
    for (path, name) in [(&maps, "c"), (&leases, "b")] {
        seen.push(api.post(path, json!({"metadata": {"name": name}})).await.to_string());
    }
    let generated = api.post(&maps, json!({"metadata": {"generateName": "x-"}})).await.is(403);
    let name = generated.text_at("/details/name");
    assert_eq!((name.len(), &name[..2]), (7, "x-"));
    seen.push(generated.to_string().replace(&name, "x-"));
    // An update adds no object.
    api.patch(&format!("{maps}/second"), MERGE_PATCH, json!({"data": {"a": "b"}})).await.is(200);
    expect![[r#"
        {"configmaps":"2","count/leases.coordination.k8s.io":"0"}
        403 Forbidden: configmaps "c" is forbidden: exceeded quota: a, requested: configmaps=1, used: configmaps=2, limited: configmaps=2
        kind="configmaps" name="c"
        403 Forbidden: leases.coordination.k8s.io "b" is forbidden: exceeded quota: a, requested: count/leases.coordination.k8s.io=1, used: count/leases.coordination.k8s.io=1, limited: count/leases.coordination.k8s.io=1
        group="coordination.k8s.io" kind="leases" name="b"
        403 Forbidden: configmaps "x-" is forbidden: exceeded quota: a, requested: configmaps=1, used: configmaps=2, limited: configmaps=2
        kind="configmaps" name="x-"
    "#]]
    .assert_eq(&lines(&seen));
    let quota = api.get(&path).await.json();
    let managers: Vec<String> = quota["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| {
            format!(
                "{} {} {} {}",
                entry["manager"], entry["operation"], entry["subresource"], entry["fieldsV1"]
            )
        })
        .collect();
    expect![[r#"
        "api-test" "Update" null {"f:spec":{"f:hard":{".":{},"f:configmaps":{},"f:count/leases.coordination.k8s.io":{}}}}
        "api-test" "Update" "status" {"f:status":{"f:hard":{".":{},"f:configmaps":{},"f:count/leases.coordination.k8s.io":{}},"f:used":{}}}
        "kube-apiserver" "Update" "status" {"f:status":{"f:used":{"f:configmaps":{},"f:count/leases.coordination.k8s.io":{}}}}
    "#]]
    .assert_eq(&lines(&managers));
}

#[tokio::test]
async fn pods_are_limited_by_their_requests() {
    let api = Api::start();
    let ns = api.namespace().await;
    let account = json!({"metadata": {"name": "default"}});
    let _ = api.post(&format!("/api/v1/namespaces/{ns}/serviceaccounts"), account).await;
    let hard = json!({"requests.cpu": "1", "limits.memory": "1Gi", "pods": "5"});
    let path = quota(&api, &ns, "compute", json!({"hard": hard})).await;
    let low = json!({"hard": {"pods": "0"}, "scopes": ["BestEffort"]});
    quota(&api, &ns, "none", low).await;
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let mut seen = vec![refused(&api, &pods, pod("a", json!({}))).await.to_string()];
    let sized = |name: &str, cpu: &str| {
        let mut pod = pod(name, json!({"cpu": cpu}));
        pod["spec"]["containers"][0]["resources"]["limits"] = json!({"memory": "256Mi"});
        pod
    };
    seen.push(api.post(&pods, sized("b", "1100m")).await.to_string());
    api.post(&format!("{pods}?dryRun=All"), sized("c", "600m")).await.is(201);
    api.post(&pods, sized("c", "600m")).await.is(201);
    seen.push(used(&api.get(&path).await).to_string());
    seen.push(api.post(&pods, sized("d", "0.5")).await.to_string());
    expect![[r#"
        403 Forbidden: pods "a" is forbidden: failed quota: compute: must specify limits.memory for: c; requests.cpu for: c
        kind="pods" name="a"
        403 Forbidden: pods "b" is forbidden: exceeded quota: compute, requested: requests.cpu=1100m, used: requests.cpu=0, limited: requests.cpu=1
        kind="pods" name="b"
        {"limits.memory":"256Mi","pods":"1","requests.cpu":"600m"}
        403 Forbidden: pods "d" is forbidden: exceeded quota: compute, requested: requests.cpu=500m, used: requests.cpu=600m, limited: requests.cpu=1
        kind="pods" name="d"
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test]
async fn a_quota_by_priority_class_counts_its_pods_only() {
    let api = Api::start();
    let ns = api.namespace().await;
    let account = json!({"metadata": {"name": "default"}});
    let _ = api.post(&format!("/api/v1/namespaces/{ns}/serviceaccounts"), account).await;
    let class = format!("c-{}", api.id);
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    api.post(classes, json!({"metadata": {"name": class}, "value": 7})).await.is(201);
    api.discard(format!("{classes}/{class}"));
    let selector =
        json!({"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": [class]}]});
    quota(&api, &ns, "a", json!({"hard": {"pods": "0"}, "scopeSelector": selector})).await;
    let pods = format!("/api/v1/namespaces/{ns}/pods");
    let mut urgent = pod("urgent", json!({}));
    urgent["spec"]["priorityClassName"] = json!(class);
    let start = Instant::now();
    // The real server hears of the class a moment later.
    let reply = loop {
        let reply = refused(&api, &pods, urgent.clone()).await;
        if !reply.to_string().contains("no PriorityClass") {
            break reply;
        }
        assert!(start.elapsed() < deadline());
    };
    reply.shows(expect![[r#"
        403 Forbidden: pods "urgent" is forbidden: exceeded quota: a, requested: pods=1, used: pods=0, limited: pods=0
        kind="pods" name="urgent""#]]);
    api.post(&pods, pod("plain", json!({}))).await.is(201);
}

#[tokio::test]
async fn services_are_charged_for_the_node_ports_that_an_update_adds() {
    let api = Api::start();
    let ns = api.namespace().await;
    let hard = json!({"services.nodeports": "1", "services.loadbalancers": "0"});
    let path = quota(&api, &ns, "a", json!({"hard": hard})).await;
    let services = format!("/api/v1/namespaces/{ns}/services");
    let balancer =
        json!({"metadata": {"name": "b"}, "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    let mut seen = vec![refused(&api, &services, balancer).await.to_string()];
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"name": "a", "port": 80}]}});
    api.post(&services, service).await.is(201);
    let change = |spec: Value| json!({"spec": spec});
    let one = format!("{services}/s");
    api.patch(&one, MERGE_PATCH, change(json!({"type": "NodePort"}))).await.is(200);
    seen.push(used(&api.get(&path).await).to_string());
    let two = json!({"ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81}]});
    seen.push(api.patch(&one, MERGE_PATCH, change(two)).await.to_string());
    expect![[r#"
        403 Forbidden: services "b" is forbidden: exceeded quota: a, requested: services.loadbalancers=1, used: services.loadbalancers=0, limited: services.loadbalancers=0
        kind="services" name="b"
        {"services.loadbalancers":"0","services.nodeports":"1"}
        403 Forbidden: services "s" is forbidden: exceeded quota: a, requested: services.nodeports=1, used: services.nodeports=1, limited: services.nodeports=1
        kind="services" name="s"
    "#]]
    .assert_eq(&lines(&seen));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_writes_never_exceed_a_quota() {
    let api = std::sync::Arc::new(Api::start());
    let ns = api.namespace().await;
    let path = quota(&api, &ns, "a", json!({"hard": {"secrets": "7", "count/secrets": "9"}})).await;
    quota(&api, &ns, "b", json!({"hard": {"count/secrets": "8", "configmaps": "0"}})).await;
    refused(&api, &format!("/api/v1/namespaces/{ns}/configmaps"), json!({"metadata": {"name": "m"}})).await;
    let secrets = format!("/api/v1/namespaces/{ns}/secrets");
    let mut writers = tokio::task::JoinSet::new();
    for number in 0..30 {
        let (api, secrets) = (std::sync::Arc::clone(&api), secrets.clone());
        writers.spawn(async move {
            api.post(&secrets, json!({"metadata": {"name": format!("s{number}")}})).await.code
        });
    }
    let codes = writers.join_all().await;
    let created = codes.iter().filter(|code| **code == 201).count();
    assert_eq!(api.get(&secrets).await.names().len(), created);
    assert!(created <= 7, "{created} objects, but the quota is 7");
    if !api.is_shared() {
        // The real server gives up after a few conflicts, and counts objects that it has not created.
        assert_eq!(created, 7, "{codes:?}");
        assert_eq!(used(&api.get(&path).await), json!({"secrets": "7", "count/secrets": "7"}));
    }
}

#[tokio::test]
async fn a_write_that_fails_charges_nothing() {
    let api = Api::start();
    if api.is_shared() {
        // The real server charges first, and the controller corrects the usage later.
        return;
    }
    let ns = api.namespace().await;
    let path = quota(&api, &ns, "a", json!({"hard": {"configmaps": "5"}})).await;
    let maps = format!("/api/v1/namespaces/{ns}/configmaps");
    api.post(&maps, json!({"metadata": {"name": "a"}})).await.is(201);
    api.post(&maps, json!({"metadata": {"name": "a"}})).await.is(409);
    assert_eq!(used(&api.get(&path).await), json!({"configmaps": "1"}));
}

#[tokio::test]
async fn the_first_update_of_a_new_claim_stores_the_phase_with_and_without_a_quota() {
    let api = Api::start();
    for with_quota in [false, true] {
        let ns = api.namespace_named(&format!("ns-{}-{with_quota}", api.id)).await;
        if with_quota {
            quota(&api, &ns, "claims", json!({"hard": {"persistentvolumeclaims": "9"}})).await;
        }
        let claims = format!("/api/v1/namespaces/{ns}/persistentvolumeclaims");
        let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
        let created = api.post(&claims, json!({"metadata": {"name": "c"}, "spec": spec})).await.is(201);
        let mut versions = vec![created.text_at("/metadata/resourceVersion")];
        for _ in 0..2 {
            let same = api.patch(&format!("{claims}/c"), MERGE_PATCH, json!({})).await.is(200);
            versions.push(same.text_at("/metadata/resourceVersion"));
        }
        assert_ne!(versions[0], versions[1], "with a quota: {with_quota}");
        assert_eq!(versions[1], versions[2], "with a quota: {with_quota}");
    }
}
