use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, poll};
use http::HeaderMap;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::level::{Level, Limits, Refused, Seat};
use super::queue::{Queue, QueueLimits};
use super::rule::Rule;
use super::schema::Counts;
use super::{Flow, FlowControl};
use crate::Server;
use crate::auth::{Attributes, Identity};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(1)
}

/// Makes a level with a queue for `waiting` requests.
fn level(seats: u32, waiting: usize) -> (Arc<Level>, Arc<Counts>) {
    let queue = Some(QueueLimits { flow: waiting, total: waiting });
    let level = Arc::new(Level::new("level", Some(Limits { seats, queue })));
    (level, Arc::new(Counts::new("schema", "level")))
}

#[test]
fn flows_take_turns() {
    let mut queue = Queue::default();
    let limits = QueueLimits { flow: 3, total: 5 };
    let places: Vec<_> = [(1, "a"), (1, "b"), (1, "c"), (2, "d"), (3, "e")]
        .map(|(flow, request)| queue.push(flow, limits, request))
        .into_iter()
        .collect();
    assert!(places.iter().all(Option::is_some));
    assert!(queue.push(2, limits, "f").is_none(), "the queue is full");
    queue.remove(places[1].unwrap());
    queue.remove(places[1].unwrap());
    queue.remove(places[4].unwrap());
    assert!(queue.push(1, QueueLimits { flow: 2, total: 5 }, "f").is_none(), "the flow has its share");
    assert!(queue.push(2, limits, "g").is_some());
    let order: Vec<&str> = std::iter::from_fn(|| queue.pop()).collect();
    assert_eq!(order, ["a", "d", "c", "g"]);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_seat_that_becomes_free_before_the_wait_is_found() {
    let (level, counts) = level(1, 2);
    let seat = level.try_enter(&counts).unwrap();
    assert!(level.try_enter(&counts).is_none());
    drop(seat);
    let mut late = Box::pin(level.enter(&counts, 0, soon()));
    assert!(poll!(&mut late).is_ready());
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_seats_in_order() {
    let (level, counts) = level(1, 2);
    let seat = level.try_enter(&counts).unwrap();
    assert!(level.try_enter(&counts).is_none());
    let mut first = Box::pin(level.enter(&counts, 0, soon()));
    let mut second = Box::pin(level.enter(&counts, 0, soon()));
    assert!(poll!(&mut first).is_pending() && poll!(&mut second).is_pending());
    assert_eq!(level.enter(&counts, 0, soon()).await.unwrap_err(), Refused::QueueFull);
    assert_eq!((counts.executing(), counts.waiting()), (1, 2));
    drop(seat);
    assert!(level.try_enter(&counts).is_none(), "the seat is for the request that waits");
    let seat = first.await.unwrap();
    assert!(poll!(&mut second).is_pending());
    drop(seat);
    drop(second.await.unwrap());
    assert_eq!((counts.executing(), counts.waiting(), counts.dispatched()), (0, 0, 3));
    assert!(level.try_enter(&counts).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_request_that_leaves_the_queue_takes_no_seat() {
    let (level, counts) = level(1, 10);
    let seat = level.try_enter(&counts).unwrap();
    let late = level.enter(&counts, 0, soon()).await.unwrap_err();
    assert_eq!(late, Refused::TimeOut);
    let mut left = Box::pin(level.enter(&counts, 1, soon()));
    let mut granted = Box::pin(level.enter(&counts, 2, soon()));
    let mut last = Box::pin(level.enter(&counts, 3, soon()));
    for request in [&mut left, &mut granted, &mut last] {
        assert!(poll!(request).is_pending());
    }
    drop(left);
    drop(seat);
    // The request leaves after the seat was given, and before the request has seen the seat.
    drop(granted);
    let seat: Seat = last.await.unwrap();
    assert!(level.try_enter(&counts).is_none());
    drop(seat);
    assert!(level.try_enter(&counts).is_some());
    let refused: Vec<u64> = counts.refused().map(|(_, count)| count).collect();
    assert_eq!(refused, [0, 0, 1, 2]);
    assert_eq!(counts.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_new_limit_holds_for_requests_that_wait() {
    let (level, counts) = level(2, 10);
    let seats: Vec<_> = (0..2).map(|_| level.try_enter(&counts).unwrap()).collect();
    let mut third = Box::pin(level.enter(&counts, 0, soon()));
    let mut fourth = Box::pin(level.enter(&counts, 0, soon()));
    assert!(poll!(&mut third).is_pending() && poll!(&mut fourth).is_pending());
    level.limit(Limits { seats: 3, queue: None });
    let third = third.await.unwrap();
    assert!(poll!(&mut fourth).is_pending());
    assert_eq!(level.enter(&counts, 0, soon()).await.unwrap_err(), Refused::NoSeat);
    level.limit(Limits { seats: 1, queue: None });
    drop(seats);
    assert!(poll!(&mut fourth).is_pending(), "one seat is taken, and one is all");
    drop(third);
    fourth.await.unwrap();
}

#[test]
fn rules_match_as_in_kube_apiserver() {
    let group = |name: &str| json!([{"kind": "Group", "group": {"name": name}}]);
    let resources = |verbs: &str, groups: &str, resources: &[&str], namespaces: Value, cluster: bool| {
        json!([{
            "verbs": [verbs], "apiGroups": [groups], "resources": resources, "namespaces": namespaces, "clusterScope": cluster
        }])
    };
    let rule = |subjects: Value, resources: Value, paths: &[&str]| {
        Rule::read(&json!({
            "subjects": subjects, "resourceRules": resources, "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": paths}]
        }))
    };
    let pods = |namespace: &'static str, subresource: &'static str| Attributes {
        verb: "get",
        resource: "pods",
        subresource,
        namespace,
        ..Attributes::default()
    };
    let at = |path: &'static str| Attributes { verb: "get", path: Some(path), ..Attributes::default() };
    let jane = Identity::user("jane").with_group("a");
    let bot = Identity::service_account("kube-system", "bot");
    let own = resources("get", "", &["pods", "pods/log"], json!(["x"]), false);
    let account = |name: &str| json!([{"kind": "ServiceAccount", "serviceAccount": {"namespace": "kube-system", "name": name}}]);
    let all = resources("*", "*", &["*"], json!(["*"]), true);
    for (rule, identity, request, expected) in [
        (rule(group("a"), own.clone(), &[]), &jane, pods("x", ""), true),
        (rule(group("a"), own.clone(), &[]), &jane, pods("x", "log"), true),
        (rule(group("a"), own.clone(), &[]), &jane, pods("x", "status"), false),
        (rule(group("a"), own.clone(), &[]), &jane, pods("y", ""), false),
        (rule(group("a"), own.clone(), &[]), &jane, pods("", ""), false),
        (rule(group("b"), own.clone(), &[]), &jane, pods("x", ""), false),
        (rule(group("*"), own, &[]), &bot, pods("x", ""), true),
        (rule(account("*"), all.clone(), &[]), &bot, pods("", ""), true),
        (rule(account("bot"), all.clone(), &[]), &bot, pods("", ""), true),
        (rule(account("other"), all.clone(), &[]), &bot, pods("", ""), false),
        (rule(account("*"), all.clone(), &[]), &jane, pods("", ""), false),
        (rule(group("a"), all.clone(), &["/healthz"]), &jane, at("/healthz"), true),
        (rule(group("a"), all.clone(), &["/healthz"]), &jane, at("/healthz/etcd"), true),
        (rule(group("a"), all.clone(), &["/healthz/*"]), &jane, at("/healthz/etcd"), true),
        (rule(group("a"), all.clone(), &["/healthz"]), &jane, at("/healthzz"), false),
        (rule(group("a"), all, &[]), &jane, at("/healthz"), false),
    ] {
        assert_eq!(rule.matches(identity, &request), expected, "{rule:?} {request:?}");
    }
}

fn names(flow: &Flow) -> (String, String) {
    (flow.schema.name.clone(), flow.schema.level.name.clone())
}

#[tokio::test]
async fn requests_of_a_new_cluster_are_classified() {
    let server = Server::builder().build().unwrap();
    let state = server.state();
    let control = FlowControl::new(600);
    let list = Attributes { verb: "list", resource: "pods", ..Attributes::default() };
    let lease = Attributes {
        verb: "update",
        group: "coordination.k8s.io",
        resource: "leases",
        namespace: "kube-system",
        ..Attributes::default()
    };
    let healthz = Attributes { verb: "get", path: Some("/readyz"), ..Attributes::default() };
    let node = Identity::user("system:node:a").with_group("system:nodes");
    let manager = Identity::user("system:kube-controller-manager");
    for (identity, request, schema, level) in [
        (Identity::admin(), &list, "exempt", "exempt"),
        (Identity::anonymous(), &healthz, "probes", "exempt"),
        (Identity::anonymous(), &list, "global-default", "global-default"),
        (Identity::service_account("a", "b"), &list, "service-accounts", "workload-low"),
        (
            Identity::service_account("kube-system", "b"),
            &list,
            "kube-system-service-accounts",
            "workload-high",
        ),
        (Identity::service_account("kube-system", "b"), &lease, "system-leader-election", "leader-election"),
        (manager, &lease, "system-leader-election", "leader-election"),
        (node.clone(), &lease, "system-node-high", "node-high"),
        (node, &list, "system-nodes", "system"),
    ] {
        let flow = control.classify(&state.store, &identity, request);
        assert_eq!(names(&flow), (schema.to_owned(), level.to_owned()), "{}", identity.name());
        let mut headers = HeaderMap::new();
        flow.label(&mut headers);
        assert_eq!(headers.len(), 2);
        assert!(headers.values().all(|uid| uid.len() == 36), "{headers:?}");
    }
    let limits = control.limits(&state.store);
    let of = |name: &str| limits.iter().find(|(level, _)| level == name).unwrap().1;
    // The shares of all levels are 245.
    assert_eq!((of("workload-low"), of("catch-all"), of("exempt")), (245, 13, 0));
}

/// Returns the time that the classification, a seat and the response headers take, without other requests.
fn cost(server: &Server, identity: &Identity, request: &Attributes<'_>) -> Duration {
    let state = server.state();
    let mut best = Duration::MAX;
    for _ in 0..10 {
        let start = std::time::Instant::now();
        for _ in 0..100_000 {
            let flow = state.flow_control.classify(&state.store, identity, request);
            let seat = flow.enter(Instant::now()).now_or_never().unwrap().unwrap();
            let mut headers = HeaderMap::with_capacity(8);
            flow.label(&mut headers);
            drop((seat, headers));
        }
        best = best.min(start.elapsed() / 100_000);
    }
    best
}

#[tokio::test]
#[ignore = "a measurement, for a release build: cargo test --release -p windlass-apiserver --lib -- --ignored cost"]
async fn the_cost_of_a_request_without_contention() {
    let server = Server::builder().build().unwrap();
    let get = Attributes {
        verb: "get",
        resource: "configmaps",
        namespace: "default",
        name: "a",
        ..Attributes::default()
    };
    for identity in [
        Identity::admin(),
        Identity::user("system:node:a").with_group("system:nodes"),
        Identity::service_account("a", "b"),
        Identity::user("jane").with_group("system:authenticated"),
    ] {
        let cost = cost(&server, &identity, &get);
        eprintln!("{}: {cost:?}", identity.name());
        assert!(cost <= Duration::from_nanos(500), "{}: {cost:?}", identity.name());
    }
}
