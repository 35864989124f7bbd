//! API Priority and Fairness: classification, limits of requests in flight, and the objects of the server.

use std::sync::{Arc, Mutex};

use expect_test::expect;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use windlass_apiserver::{Clock, Listen, Server};

use crate::harness::{Api, MERGE_PATCH, Reply, lines};

const SCHEMAS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
const LEVELS: &str = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations";
const SCHEMA_UID: &str = "x-kubernetes-pf-flowschema-uid";
const LEVEL_UID: &str = "x-kubernetes-pf-prioritylevel-uid";

/// A level with a seat for each 1,000 requests of a server, and a queue for `waiting` requests.
fn level(name: &str, waiting: u32) -> Value {
    let response = if waiting == 0 {
        json!({"type": "Reject"})
    } else {
        json!({"type": "Queue", "queuing": {"queues": 1, "handSize": 1, "queueLengthLimit": waiting}})
    };
    json!({
        "metadata": {"name": name},
        "spec": {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": response}}
    })
}

/// A schema for the requests of one user for ConfigMaps.
fn schema(name: &str, level: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {
            "matchingPrecedence": 50,
            "priorityLevelConfiguration": {"name": level},
            "rules": [{
                "subjects": [{"kind": "User", "user": {"name": user}}],
                "resourceRules": [{
                    "verbs": ["*"], "apiGroups": [""], "resources": ["configmaps"], "namespaces": ["*"], "clusterScope": true
                }]
            }]
        }
    })
}

async fn uid(api: &Api, path: &str) -> String {
    api.get(path).await.is(200).text_at("/metadata/uid")
}

/// Returns the uids of the flow schema and the priority level that a reply names.
fn classified(reply: &Reply) -> [String; 2] {
    [SCHEMA_UID, LEVEL_UID].map(|name| reply.header(name).expect("a classified request").to_owned())
}

#[tokio::test]
async fn replies_name_the_flow_schema_and_the_priority_level() {
    let api = Api::start();
    let stranger = api.impersonating("stranger", &[]);
    for (reply, schema, level) in [
        (api.get("/api/v1/namespaces").await.is(200), "exempt", "exempt"),
        (stranger.get("/healthz").await, "probes", "exempt"),
        (stranger.get("/api/v1/namespaces").await.is(403), "global-default", "global-default"),
        (api.get("/api/v1/namespaces/none-at-all").await.is(404), "exempt", "exempt"),
    ] {
        let of_schema = uid(&api, &format!("{SCHEMAS}/{schema}")).await;
        let of_level = uid(&api, &format!("{LEVELS}/{level}")).await;
        assert_eq!(classified(&reply), [of_schema, of_level], "{schema} {level}");
    }
}

/// Starts a request that holds a seat: the body does not end.
async fn held(api: &Api, path: &str) {
    let request = api.request(Method::POST, path).body("application/json", "{");
    request.send_unfinished().await;
}

#[tokio::test]
async fn a_full_level_refuses_requests() {
    let server = Server::builder().requests_in_flight(100).build().unwrap();
    let api = Api::listening(&server, Listen::default()).await;
    api.post(LEVELS, level("narrow", 0)).await.is(201);
    api.post(SCHEMAS, schema("narrow", "narrow", "jane")).await.is(201);
    let role = json!({
        "metadata": {"name": "all"}, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    api.post(&format!("{rbac}/clusterroles"), role).await.is(201);
    let binding = json!({
        "metadata": {"name": "all"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "all"},
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "jane"},
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "john"}
        ]
    });
    api.post(&format!("{rbac}/clusterrolebindings"), binding).await.is(201);
    let maps = "/api/v1/namespaces/default/configmaps";
    let (jane, john) = (api.impersonating("jane", &[]), api.impersonating("john", &[]));
    jane.get(maps).await.is(200);
    let (refused, seat) = loop {
        let mut seat = Box::pin(held(&jane, maps));
        tokio::select! {
            biased;
            // The other request had the seat at that moment.
            () = &mut seat => {}
            // The seat is taken when the request has arrived.
            refused = jane.eventually(maps, |reply| reply.code != 200) => break (refused, seat),
        }
    };
    let body = String::from_utf8_lossy(&refused.body).into_owned();
    let shown =
        [refused.code.to_string(), refused.header("retry-after").unwrap_or_default().to_owned(), body];
    expect![[r#"
        429
        1
        Too many requests, please try again later.

    "#]]
    .assert_eq(&lines(&shown));
    assert_eq!(classified(&refused)[0], uid(&api, &format!("{SCHEMAS}/narrow")).await);
    john.get(maps).await.is(200);
    jane.get("/api/v1/namespaces/default/secrets").await.is(200);
    let page = String::from_utf8(api.get("/metrics").await.is(200).body.to_vec()).unwrap();
    let of_narrow = r#"{flow_schema="narrow",priority_level="narrow""#;
    for wanted in [
        format!("apiserver_flowcontrol_current_executing_requests{of_narrow}}} 1"),
        format!("apiserver_flowcontrol_rejected_requests_total{of_narrow},reason=\"concurrency-limit\"}} "),
        "apiserver_flowcontrol_nominal_limit_seats{priority_level=\"narrow\"} 1".to_owned(),
    ] {
        assert!(page.contains(&wanted), "{wanted}\n{page}");
    }
    drop(seat);
    jane.eventually(maps, |reply| reply.code == 200).await;
    // A watch holds the seat only until the watch has started.
    let watch = jane.watch(maps).await;
    let mut another = jane.watch(maps).await;
    api.post(maps, json!({"metadata": {"name": "seen"}})).await.is(201);
    another.next().await;
    drop(watch);
}

#[tokio::test]
async fn a_schema_without_a_level_dangles() {
    let api = Api::start();
    let (one, other) = (format!("one-{}", api.id), format!("other-{}", api.id));
    api.post(SCHEMAS, schema(&one, &other, "nobody-at-all")).await.is(201);
    api.discard(format!("{SCHEMAS}/{one}"));
    let dangling = |reply: &Reply, status: &str| {
        let conditions = reply.json()["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Dangling" && condition["status"] == status)
    };
    let path = format!("{SCHEMAS}/{one}");
    let seen = api.eventually(&path, |reply| dangling(reply, "True")).await;
    let mut shown = vec![seen.text_at("/status/conditions/0/message")];
    api.post(LEVELS, level(&other, 0)).await.is(201);
    api.discard(format!("{LEVELS}/{other}"));
    let seen = api.eventually(&path, |reply| dangling(reply, "False")).await;
    shown.push(seen.text_at("/status/conditions/0/message"));
    shown.push(seen.text_at("/metadata/managedFields/0/manager"));
    api.delete(&format!("{LEVELS}/{other}")).await.is(200);
    api.eventually(&path, |reply| dangling(reply, "True")).await;
    for text in &mut shown {
        *text = text.replace(&api.id, "ID");
    }
    expect![[r#"
        This FlowSchema references the PriorityLevelConfiguration object named "other-ID" but there is no such object
        This FlowSchema references the PriorityLevelConfiguration object named "other-ID" and it exists
        api-priority-and-fairness-config-consumer-v1
    "#]]
    .assert_eq(&lines(&shown));
}

/// A clock that a test sets.
#[derive(Clone)]
struct TestClock(Arc<Mutex<Timestamp>>);

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

#[tokio::test]
async fn the_objects_of_the_server_are_restored() {
    let clock = TestClock(Arc::new(Mutex::new(Timestamp::now())));
    let server = Server::builder().clock(clock.clone()).build().unwrap();
    let api = Api::embedded(&server);
    let later = || {
        let mut now = clock.0.lock().unwrap();
        *now += jiff::SignedDuration::from_secs(61);
    };
    // The first look is soon after the start.
    api.get(SCHEMAS).await.is(200);
    let all = [api.get(SCHEMAS).await.names(), api.get(LEVELS).await.names()];
    let exempt = uid(&api, &format!("{LEVELS}/exempt")).await;
    for path in [SCHEMAS, LEVELS] {
        api.request(Method::DELETE, path).send().await.is(200);
    }
    // Requests have a level even without objects.
    let reply = api.get(LEVELS).await.is(200);
    assert_eq!(classified(&reply), ["", ""]);
    assert_eq!(reply.names(), Vec::<String>::new());
    later();
    assert_eq!([api.get(SCHEMAS).await.names(), api.get(LEVELS).await.names()], all);
    assert_ne!(uid(&api, &format!("{LEVELS}/exempt")).await, exempt);
    let dangling = format!("{SCHEMAS}/catch-all");
    assert_eq!(api.get(&dangling).await.text_at("/status/conditions/0/status"), "False");
    // A user may change the objects that are not mandatory.
    let change = json!({"spec": {"matchingPrecedence": 7_777}});
    let patch = async |name: &str| api.patch(&format!("{SCHEMAS}/{name}"), MERGE_PATCH, change.clone()).await;
    patch("catch-all").await;
    let keep = json!({"metadata": {"annotations": {"apf.kubernetes.io/autoupdate-spec": "false"}}});
    let nodes = format!("{SCHEMAS}/system-nodes");
    api.patch(&nodes, MERGE_PATCH, keep).await.is(200);
    patch("system-nodes").await.is(200);
    patch("service-accounts").await.is(200);
    later();
    let mut precedences = Vec::new();
    for name in ["catch-all", "system-nodes", "service-accounts"] {
        precedences.push(api.get(&format!("{SCHEMAS}/{name}")).await.at("/spec/matchingPrecedence"));
    }
    assert_eq!(json!(precedences), json!([10_000, 7_777, 9_000]));
}

#[tokio::test]
async fn a_table_of_flow_schemas_is_in_the_order_of_precedence() {
    let api = Api::start();
    let path = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas";
    let request = api.request(Method::GET, path).accept("application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = request.send().await.is(200).json();
    let rows = table["rows"].as_array().unwrap().iter();
    let order: Vec<(i64, &str)> =
        rows.map(|row| (row["cells"][2].as_i64().unwrap(), row["cells"][0].as_str().unwrap())).collect();
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(order.first(), Some(&(1, "exempt")));
    // A list stays in the order of the names.
    assert!(api.get(path).await.names().is_sorted());
}
