//! Built-in kinds: what is filled in, what is refused and in which words, what is given out.
//!
//! `kinds/filled.json` and `kinds/refused.json` are replies of a real kube-apiserver 1.36 to dry runs.

use std::collections::BTreeSet;

use http::Method;
use serde_json::{Map, Value, json};

use crate::harness::{JSON, MERGE, client};

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn recorded(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

/// Takes out of a reply what differs from run to run.
fn comparable(mut reply: Value) -> Value {
    let uid = reply["metadata"]["uid"].as_str().unwrap_or("no uid").to_owned();
    reply = serde_json::from_str(&reply.to_string().replace(&uid, "UID")).unwrap();
    if let Some(metadata) = reply["metadata"].as_object_mut() {
        for field in ["uid", "creationTimestamp", "managedFields", "resourceVersion"] {
            metadata.remove(field);
        }
    }
    if let Some(status) = reply.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
        let conditions = status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten();
        for condition in conditions.filter_map(Value::as_object_mut) {
            condition.remove("lastTransitionTime");
        }
    }
    if reply["kind"] == "Service"
        && reply["spec"]["clusterIP"].as_str().is_some_and(|ip| ip.starts_with("10."))
    {
        reply["spec"]["clusterIP"] = "IP".into();
        reply["spec"]["clusterIPs"] = json!(["IP"]);
    }
    let ports = reply.pointer_mut("/spec/ports").and_then(Value::as_array_mut).into_iter().flatten();
    for port in ports.filter_map(Value::as_object_mut).filter(|port| port.contains_key("nodePort")) {
        port.insert("nodePort".to_owned(), "NP".into());
    }
    reply
}

#[tokio::test]
async fn what_is_left_out_is_filled_in_as_by_the_real_server() {
    let client = client();
    for case in recorded(include_str!("kinds/filled.json")) {
        let path = format!("{}?dryRun=All", case["path"].as_str().unwrap());
        let reply = client.post(&path, &case["object"]).await.expect(201);
        assert_eq!(comparable(reply.body), case["reply"], "{}", case["object"]);
    }
}

#[tokio::test]
async fn what_is_wrong_is_refused_in_the_words_of_the_real_server() {
    let client = client();
    for case in recorded(include_str!("kinds/refused.json")) {
        let path = format!("{}?dryRun=All", case["path"].as_str().unwrap());
        let reply = client.post(&path, &case["object"]).await;
        assert_eq!(
            (u64::from(reply.code), reply.message()),
            (case["code"].as_u64().unwrap(), case["message"].as_str().unwrap())
        );
        let causes = reply.body["details"]["causes"].as_array().cloned().unwrap_or_default();
        let fields: Vec<Value> = causes.iter().map(|cause| cause["field"].clone()).collect();
        assert_eq!(Value::Array(fields), case["fields"], "{}", case["object"]);
    }
}

fn service(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn addresses_and_node_ports_are_given_out_once() {
    let client = client();
    let mut addresses = BTreeSet::new();
    let mut ports = BTreeSet::new();
    for number in 0..20 {
        let spec =
            json!({"type": "NodePort", "ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}]});
        let made = client.post(SERVICES, &service(&format!("s{number}"), spec)).await.expect(201).body;
        assert!(addresses.insert(made["spec"]["clusterIP"].as_str().unwrap().to_owned()));
        for port in made["spec"]["ports"].as_array().unwrap() {
            let port = port["nodePort"].as_u64().unwrap();
            assert!((30_000..=32_767).contains(&port) && ports.insert(port));
        }
    }
    let taken = addresses.first().unwrap();
    let spec = json!({"clusterIP": taken, "ports": [{"port": 80}]});
    let refused = client.post(SERVICES, &service("twice", spec)).await.expect(422);
    assert!(
        refused
            .message()
            .ends_with(&format!("failed to allocate IP {taken}: provided IP is already allocated"))
    );
    let spec = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": ports.first()}]});
    let refused = client.post(SERVICES, &service("port", spec)).await.expect(422);
    assert!(refused.message().ends_with("provided port is already allocated"), "{}", refused.message());
}

#[tokio::test]
async fn a_service_keeps_its_address_and_gives_back_what_its_new_type_does_not_use() {
    let client = client();
    let made = client.post(SERVICES, &service("s", json!({"ports": [{"port": 80}]}))).await.expect(201).body;
    let path = format!("{SERVICES}/s");
    let patched = client.patch(&path, MERGE, &json!({"spec": {"type": "NodePort"}})).await.expect(200).body;
    assert_eq!(patched["spec"]["clusterIP"], made["spec"]["clusterIP"]);
    assert!(patched["spec"]["ports"][0]["nodePort"].is_u64());
    let back = client.patch(&path, MERGE, &json!({"spec": {"type": "ClusterIP"}})).await.expect(200).body;
    assert_eq!(back["spec"], made["spec"]);
    let moved = client.patch(&path, MERGE, &json!({"spec": {"clusterIP": "10.0.0.77"}})).await.expect(422);
    assert!(moved.message().ends_with("may not change once set"));
    let external = json!({"spec": {"type": "ExternalName", "externalName": "a.b"}});
    let external = client.patch(&path, MERGE, &external).await.expect(200).body;
    assert_eq!(external["spec"].get("clusterIP"), None);
}

#[tokio::test]
async fn events_are_one_set_that_two_groups_show() {
    let client = client();
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "eventTime": "2026-01-02T03:04:05.000006Z", "reportingController": "a.b/c", "reportingInstance": "c-1",
        "action": "Act", "reason": "Because", "note": "text", "type": "Normal",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    });
    client.post("/apis/events.k8s.io/v1/namespaces/default/events", &event).await.expect(201);
    let core = client.get("/api/v1/namespaces/default/events/e").await.expect(200).body;
    assert_eq!(core["message"], "text");
    assert_eq!(core["involvedObject"]["name"], "p");
    assert_eq!(core["reportingComponent"], "a.b/c");
    assert_eq!(core["firstTimestamp"], Value::Null);
    let new = client.get("/apis/events.k8s.io/v1/namespaces/default/events/e").await.expect(200).body;
    assert_eq!((&new["note"], &new["regarding"]["name"]), (&json!("text"), &json!("p")));
    let selected = client
        .get("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dp")
        .await
        .expect(200);
    assert_eq!(selected.body["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn an_autoscaler_is_the_same_in_both_versions() {
    let client = client();
    let metrics = json!([
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
        {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}},
    ]);
    let scaler = json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "metrics": metrics,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}},
    });
    let (v1, v2) = (
        "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
    );
    client.post(v2, &scaler).await.expect(201);
    let old = client.get(&format!("{v1}/h")).await.expect(200).body;
    assert_eq!(old["spec"]["targetCPUUtilizationPercentage"], 60);
    assert_eq!(old["spec"].get("metrics"), None);
    client.patch(&format!("{v1}/h"), MERGE, &json!({"spec": {"maxReplicas": 9}})).await.expect(200);
    let new = client.get(&format!("{v2}/h")).await.expect(200).body;
    assert_eq!(new["spec"]["maxReplicas"], 9);
    let names: Vec<&Value> =
        new["spec"]["metrics"].as_array().unwrap().iter().map(|metric| &metric["resource"]["name"]).collect();
    assert_eq!(names, ["cpu", "memory"], "nothing is lost on the way through the older version");
    assert_eq!(new["metadata"].get("annotations").and_then(Value::as_object).map_or(0, Map::len), 0);
}

#[tokio::test]
async fn a_pod_gets_the_priority_of_its_class_and_ends_with_grace() {
    let client = client();
    let pod = |name: &str, class: &str, node: &str| {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "priorityClassName": class, "nodeName": node, "containers": [{"name": "c", "image": "i"}]}})
    };
    let made = client.post(PODS, &pod("a", "system-node-critical", "n")).await.expect(201).body;
    assert_eq!(made["spec"]["priority"], 2_000_001_000);
    let refused = client.post(PODS, &pod("b", "nope", "")).await.expect(403);
    assert_eq!(refused.message(), "pods \"b\" is forbidden: no PriorityClass with name nope was found");
    let path = format!("{PODS}/a");
    let ending = client.delete(&path).await.expect(200).body;
    assert_eq!(ending["metadata"]["deletionGracePeriodSeconds"], 30);
    client
        .send(Method::DELETE, &path, &[("content-type", JSON)], r#"{"gracePeriodSeconds":0}"#)
        .await
        .expect(200);
    client.get(&path).await.expect(404);
}

#[tokio::test]
async fn what_the_server_makes_for_itself_is_there() {
    let client = client();
    let service = client.get(&format!("{SERVICES}/kubernetes")).await.expect(200).body;
    assert_eq!(service["spec"]["clusterIP"], "10.0.0.1");
    for namespace in ["default", "kube-system", "kube-public"] {
        let refused = client.delete(&format!("/api/v1/namespaces/{namespace}")).await.expect(403);
        assert!(refused.message().ends_with("this namespace may not be deleted"), "{}", refused.message());
    }
    client.get("/apis/scheduling.k8s.io/v1/priorityclasses/system-cluster-critical").await.expect(200);
}

#[tokio::test]
async fn tables_have_the_columns_of_their_kind() {
    let client = client();
    let headers = [("accept", TABLE)];
    let table = client.send(Method::GET, SERVICES, &headers, "").await.expect(200).body;
    let names: Vec<&Value> =
        table["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(names, ["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "Selector"]);
    let cells = &table["rows"][0]["cells"];
    assert_eq!(cells[0], "kubernetes");
    assert_eq!(cells[4], "443/TCP");
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let broken =
        client.send(Method::GET, &format!("{SERVICES}?includeObject=All"), &headers, "").await.expect(400);
    assert!(broken.message().starts_with("Unable to convert to Table as requested: includeObject"));
}

#[tokio::test]
async fn a_secret_takes_texts_and_keeps_its_type() {
    let client = client();
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}});
    let made = client.post(secrets, &secret).await.expect(201).body;
    assert_eq!((&made["data"]["a"], &made["type"]), (&json!("Yg=="), &json!("Opaque")));
    assert_eq!(made.get("stringData"), None);
    let path = format!("{secrets}/s");
    let refused = client.patch(&path, MERGE, &json!({"type": "other"})).await.expect(422);
    assert!(refused.message().ends_with("type: Invalid value: \"other\": field is immutable"));
    client.patch(&path, MERGE, &json!({"immutable": true})).await.expect(200);
    let refused = client.patch(&path, MERGE, &json!({"stringData": {"a": "c"}})).await.expect(422);
    assert!(refused.message().ends_with("data: Forbidden: field is immutable when `immutable` is set"));
}

/// The JSON pointers of everything in a value.
fn pointers(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    let step = |name: &str| format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, field)| pointers(field, &step(name), out)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, item)| pointers(item, &step(&index.to_string()), out));
        }
        _ => {}
    }
}

#[tokio::test]
async fn no_value_in_any_place_brings_the_server_down() {
    let client = client();
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!("\u{0}%/é"),
        json!([]),
        json!([{}]),
        json!({"": {}}),
    ];
    for (number, case) in recorded(include_str!("kinds/filled.json")).into_iter().enumerate() {
        let path = format!("{}?dryRun=All", case["path"].as_str().unwrap());
        let mut places = Vec::new();
        pointers(&case["object"], "", &mut places);
        for (index, place) in places.iter().enumerate() {
            // Another odd value in each place: all of them meet many places.
            for step in 0..3 {
                let mut object = case["object"].clone();
                *object.pointer_mut(place).unwrap() = odd[(number + index * 3 + step) % odd.len()].clone();
                let reply = client.post(&path, &object).await;
                assert!(reply.code < 500, "{place} of {object}: {}", reply.text);
            }
        }
    }
}
