//! Pods on several nodes: affinity, spread, and nodes that come and go.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube_client::Client;
use kube_client::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_test::eventually;

use crate::support::{
    WAIT_LIMIT, api, becomes, cluster_with, create, create_in, event, node, node_becomes, node_of, phase,
    pod, schedule_message, taints,
};

const ZONE: &str = "topology.kubernetes.io/zone";

fn deployment(name: &str, replicas: i32, spec: Value) -> Value {
    let mut spec = spec;
    spec["containers"] = json!([{"name": "c", "image": "busybox"}]);
    let labels = json!({"app": name});
    json!({
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    })
}

fn apart(app: &str) -> Value {
    let term =
        json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"});
    json!({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
}

/// Waits until `count` pods of an app are running, and returns the nodes, sorted.
async fn running_on(client: &Client, app: &str, count: usize) -> Vec<String> {
    let pods: Api<Pod> = api(client);
    let selected = ListParams::default().labels(&format!("app={app}"));
    eventually(WAIT_LIMIT, || async {
        let pods = pods.list(&selected).await.map_err(|error| error.to_string())?;
        let running: Vec<&Pod> = pods.items.iter().filter(|pod| phase(pod) == "Running").collect();
        let mut nodes: Vec<String> = running.iter().map(|pod| node_of(pod).to_owned()).collect();
        nodes.sort();
        if nodes.len() == count { Ok(nodes) } else { Err(format!("{nodes:?} run")) }
    })
    .await
}

#[tokio::test]
async fn replicas_that_repel_each_other_wait_for_another_node() {
    let (cluster, _running) = cluster_with(vec![node("two", json!({}), json!({}))]).await;
    let client = cluster.client();
    create::<Deployment>(&client, deployment("web", 3, apart("web"))).await;
    assert_eq!(running_on(&client, "web", 2).await, ["two", "windlass"]);
    let pods: Api<Pod> = api(&client);
    let message = eventually(WAIT_LIMIT, || async {
        let pods = pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let waiting = pods.items.iter().map(schedule_message).find(|message| !message.is_empty());
        waiting.map(str::to_owned).ok_or_else(|| "no pod waits".to_owned())
    })
    .await;
    assert_eq!(
        message,
        "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules. no new claims to deallocate, preemption: 0/2 nodes are available: 2 No \
         preemption victims found for incoming pod."
    );
    let nodes: Api<Node> = Api::all(client.clone());
    let annotations = json!({"annotations": {"kubelet.windlass.dev/run": "simulate"}, "name": "three"});
    let three: Node = serde_json::from_value(json!({"metadata": annotations})).unwrap();
    nodes.create(&PostParams::default(), &three).await.unwrap();
    assert_eq!(running_on(&client, "web", 3).await, ["three", "two", "windlass"]);
    let three = node_becomes(&client, "three", |node| taints(node).is_empty()).await;
    assert_eq!(three.metadata.labels.unwrap()["kubernetes.io/hostname"], "three");
}

#[tokio::test]
async fn zones_are_filled_evenly() {
    let zone = |name: &str, zone: &str| node(name, json!({ZONE: zone}), json!({}));
    let nodes = vec![zone("windlass", "a"), zone("b1", "b"), zone("b2", "b"), zone("c", "c")];
    let (cluster, _running) = cluster_with(nodes).await;
    let client = cluster.client();
    let constraint = json!({
        "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "even"}},
    });
    create::<Deployment>(&client, deployment("even", 6, json!({"topologySpreadConstraints": [constraint]})))
        .await;
    assert_eq!(running_on(&client, "even", 6).await, ["b1", "b2", "c", "c", "windlass", "windlass"]);
}

#[tokio::test]
async fn a_lenient_pod_ignores_what_it_waits_for() {
    let (cluster, _running) = cluster_with(Vec::new()).await;
    let client = cluster.client();
    let mut first = pod("first", &json!({}));
    first["metadata"]["labels"] = json!({"app": "one"});
    first["spec"]["affinity"] = apart("one")["affinity"].clone();
    create::<Pod>(&client, first.clone()).await;
    becomes::<Pod>(&client, "first", |pod| phase(pod) == "Running").await;
    let mut second = first;
    second["metadata"]["name"] = json!("second");
    second["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}]);
    create::<Pod>(&client, second.clone()).await;
    becomes::<Pod>(&client, "second", |pod| !schedule_message(pod).is_empty()).await;
    let mut lenient = second.clone();
    lenient["metadata"]["name"] = json!("lenient");
    lenient["metadata"]["annotations"]["kubelet.windlass.dev/strict"] = json!("false");
    create::<Pod>(&client, lenient).await;
    becomes::<Pod>(&client, "lenient", |pod| node_of(pod) == "windlass").await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let metadata = json!({"name": "kind", "annotations": {"kubelet.windlass.dev/strict": "false"}});
    let kind = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
    namespaces.create(&PostParams::default(), &kind).await.unwrap();
    create_in::<Pod>(&client, "kind", second).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "kind");
    eventually(WAIT_LIMIT, || async {
        let pod = pods.get("second").await.map_err(|error| error.to_string())?;
        if node_of(&pod) == "windlass" { Ok(()) } else { Err("not placed".to_owned()) }
    })
    .await;
}

#[tokio::test]
async fn a_waiting_pod_may_become_lenient() {
    let (cluster, _running) = cluster_with(Vec::new()).await;
    let client = cluster.client();
    let mut waiting = pod("p", &json!({}));
    waiting["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "absent"}}]);
    create::<Pod>(&client, waiting.clone()).await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let kind = serde_json::from_value(json!({"metadata": {"name": "kind"}})).unwrap();
    namespaces.create(&PostParams::default(), &kind).await.unwrap();
    create_in::<Pod>(&client, "kind", waiting).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "kind");
    let waits = |pod: &Pod| !schedule_message(pod).is_empty() && node_of(pod).is_empty();
    becomes::<Pod>(&client, "p", waits).await;
    eventually(WAIT_LIMIT, || async {
        let pod = pods.get("p").await.map_err(|error| error.to_string())?;
        if waits(&pod) { Ok(()) } else { Err("not tried".to_owned()) }
    })
    .await;
    let lenient =
        Patch::Merge(json!({"metadata": {"annotations": {"kubelet.windlass.dev/strict": "false"}}}));
    api::<Pod>(&client).patch("p", &PatchParams::default(), &lenient).await.unwrap();
    becomes::<Pod>(&client, "p", |pod| node_of(pod) == "windlass").await;
    namespaces.patch("kind", &PatchParams::default(), &lenient).await.unwrap();
    eventually(WAIT_LIMIT, || async {
        let pod = pods.get("p").await.map_err(|error| error.to_string())?;
        if node_of(&pod) == "windlass" { Ok(()) } else { Err("not placed".to_owned()) }
    })
    .await;
}

#[tokio::test]
async fn the_pods_of_a_stopped_node_move_to_another_node() {
    let two = node("two", json!({"pool": "x"}), json!({}));
    let (cluster, _running) = cluster_with(vec![two]).await;
    let client = cluster.client();
    let tolerations: Vec<Value> = ["not-ready", "unreachable"]
        .iter()
        .map(|taint| {
            let key = format!("node.kubernetes.io/{taint}");
            json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1})
        })
        .collect();
    let preference = json!({"matchExpressions": [{"key": "pool", "operator": "Exists"}]});
    let affinity = json!({"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 100, "preference": preference},
    ]}});
    let spec = json!({"tolerations": tolerations, "affinity": affinity});
    create::<Deployment>(&client, deployment("web", 1, spec)).await;
    assert_eq!(running_on(&client, "web", 1).await, ["two"]);
    let state = |state: Value| {
        Patch::Merge(json!({"metadata": {"annotations": {"kubelet.windlass.dev/node-state": state}}}))
    };
    let nodes: Api<Node> = Api::all(client.clone());
    nodes.patch("two", &PatchParams::default(), &state(json!("stopped"))).await.unwrap();
    let lost = node_becomes(&client, "two", |node| {
        taints(node).contains(&"node.kubernetes.io/unreachable:NoExecute".to_owned())
    })
    .await;
    let conditions = lost.status.unwrap().conditions.unwrap();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready").unwrap();
    assert_eq!(
        (ready.status.as_str(), ready.message.as_deref()),
        ("Unknown", Some("Kubelet stopped posting node status."))
    );
    let pods: Api<Pod> = api(&client);
    let old = eventually(WAIT_LIMIT, || async {
        let pods = pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let ending = pods.items.into_iter().find(|pod| pod.metadata.deletion_timestamp.is_some());
        ending.ok_or_else(|| "no pod ends".to_owned())
    })
    .await;
    assert_eq!(node_of(&old), "two");
    let disruption = old.status.unwrap().conditions.unwrap();
    assert!(
        disruption
            .iter()
            .any(|c| c.type_ == "DisruptionTarget" && c.reason.as_deref() == Some("DeletionByTaintManager"))
    );
    let name = old.metadata.name.unwrap();
    assert_eq!(
        event(&client, &name, "TaintManagerEviction").await,
        format!("Marking for deletion Pod default/{name}")
    );
    eventually(WAIT_LIMIT, || async {
        let pods = pods.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let mut running =
            pods.items.iter().filter(|pod| node_of(pod) == "windlass" && phase(pod) == "Running");
        running.next().map(drop).ok_or_else(|| "the replacement does not run".to_owned())
    })
    .await;
    assert!(pods.get_opt(&name).await.unwrap().is_some(), "no kubelet ends the old pod");
    nodes.patch("two", &PatchParams::default(), &state(Value::Null)).await.unwrap();
    eventually(WAIT_LIMIT, || async {
        match pods.get_opt(&name).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    node_becomes(&client, "two", |node| taints(node).is_empty()).await;
}

#[tokio::test]
async fn a_node_may_report_that_it_is_not_ready() {
    let (cluster, _running) = cluster_with(vec![node("two", json!({}), json!({}))]).await;
    let client = cluster.client();
    let nodes: Api<Node> = Api::all(client.clone());
    let state =
        Patch::Merge(json!({"metadata": {"annotations": {"kubelet.windlass.dev/node-state": "not-ready"}}}));
    nodes.patch("two", &PatchParams::default(), &state).await.unwrap();
    let node = node_becomes(&client, "two", |node| taints(node).len() == 2).await;
    assert_eq!(
        taints(&node),
        ["node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/not-ready:NoExecute"]
    );
    nodes.delete("two", &kube_client::api::DeleteParams::default()).await.unwrap();
    eventually(WAIT_LIMIT, || async {
        match nodes.get_opt("two").await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}
