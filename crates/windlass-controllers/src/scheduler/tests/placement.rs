//! Pod affinity and topology spread.

use serde_json::{Value, json};

use super::cluster::{TestCluster, labelled};
use crate::scheduler::decision::Decision;

const HOST: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

/// Three nodes in two zones.
fn zones() -> TestCluster {
    ["a1:a", "a2:a", "b1:b"].iter().fold(TestCluster::default(), |cluster, node| {
        let (name, zone) = node.split_once(':').unwrap();
        cluster.node(name, json!({ZONE: zone}), json!({}))
    })
}

fn web(name: &str, spec: Value) -> Value {
    labelled(name, json!({"app": "web"}), spec)
}

fn term(app: &str, key: &str) -> Value {
    json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key})
}

fn required(rule: &str, terms: Value) -> Value {
    json!({"affinity": {rule: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}})
}

fn spread(key: &str, when: &str, change: Value) -> Value {
    let mut constraint = json!({
        "maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when,
        "labelSelector": {"matchLabels": {"app": "web"}},
    });
    super::cluster::merge(&mut constraint, change);
    json!({"topologySpreadConstraints": [constraint]})
}

#[test]
fn replicas_that_repel_each_other_need_a_node_each() {
    let apart = || required("podAntiAffinity", json!([term("web", HOST)]));
    let cluster = TestCluster::of(&["n"]).with("n", web("first", apart()));
    assert_eq!(
        cluster.choose(web("second", apart())),
        Err("0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules. no new claims to deallocate, preemption: 0/1 nodes are available: \
             1 No preemption victims found for incoming pod."
            .into())
    );
    assert_eq!(
        cluster.refusal(labelled("db", json!({"app": "db"}), apart())),
        "0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules."
    );
}

#[test]
fn pods_are_kept_from_pods_that_repel_them() {
    let cluster = TestCluster::of(&["n"]).with(
        "n",
        labelled("lonely", json!({"app": "db"}), required("podAntiAffinity", json!([term("web", HOST)]))),
    );
    assert_eq!(
        cluster.refusal(web("p", json!({}))),
        "0/1 nodes are available: 1 node(s) didn't satisfy existing pods anti-affinity rules."
    );
    assert_eq!(cluster.choose(labelled("p", json!({"app": "other"}), json!({}))), Ok("n".into()));
}

#[test]
fn affinity_follows_other_pods_through_the_topology() {
    let near = |app: &str| required("podAffinity", json!([term(app, ZONE)]));
    let cluster = zones().with("b1", labelled("db", json!({"app": "db"}), json!({})));
    assert_eq!(cluster.choose(web("p", near("db"))), Ok("b1".into()));
    assert_eq!(
        cluster.refusal(web("p", near("cache"))),
        "0/3 nodes are available: 3 node(s) didn't match pod affinity rules."
    );
    assert!(cluster.choose(web("p", near("web"))).is_ok(), "the first of a group may go anywhere");
}

#[test]
fn terms_select_pods_of_their_namespaces() {
    let mut term = term("web", HOST);
    term["namespaceSelector"] = json!({"matchLabels": {"team": "x"}});
    let cluster = TestCluster::of(&["a", "b"])
        .namespace("default", json!({"team": "x"}))
        .with("a", web("w", json!({})));
    let near = required("podAffinity", json!([term.clone()]));
    assert_eq!(cluster.choose(labelled("p", json!({}), near.clone())), Ok("a".into()));
    let cluster = cluster.namespace("default", json!({"team": "y"}));
    assert!(cluster.choose(labelled("p", json!({}), near)).is_err());
}

#[test]
fn match_label_keys_narrow_the_selection() {
    let version = |name: &str, version: &str| {
        let mut term = term("web", HOST);
        term["matchLabelKeys"] = json!(["version"]);
        labelled(name, json!({"app": "web", "version": version}), required("podAntiAffinity", json!([term])))
    };
    let cluster = TestCluster::of(&["n"]).with("n", version("old", "1"));
    assert_eq!(cluster.choose(version("new", "2")), Ok("n".into()));
    assert!(cluster.choose(version("new", "1")).is_err());
}

#[test]
fn preferred_affinity_attracts_and_repels() {
    let preferred = |rule: &str| {
        let term = json!([{"weight": 100, "podAffinityTerm": term("db", ZONE)}]);
        web("p", json!({"affinity": {rule: {"preferredDuringSchedulingIgnoredDuringExecution": term}}}))
    };
    let cluster = zones().with("b1", labelled("db", json!({"app": "db"}), json!({})));
    assert_eq!(cluster.choose(preferred("podAffinity")), Ok("b1".into()));
    assert_eq!(cluster.choose(preferred("podAntiAffinity")), Ok("a1".into()));
}

#[test]
fn domains_may_differ_by_the_skew() {
    let even = || spread(ZONE, "DoNotSchedule", json!({}));
    let cluster = zones().with("a1", web("w1", json!({})));
    assert_eq!(cluster.choose(web("p", even())), Ok("b1".into()));
    let full = cluster.with("b1", web("w2", json!({}))).with("b1", web("w3", json!({})));
    assert_eq!(full.choose(web("p", even())), Ok("a2".into()));
    let uneven = zones().with("a1", web("w1", json!({}))).with("b1", web("x", json!({"nodeName": "b1"})));
    let uneven = uneven.node("c1", json!({ZONE: "c"}), json!({"unschedulable": true}));
    assert_eq!(
        uneven.refusal(web("p", even())),
        "0/4 nodes are available: 1 node(s) were unschedulable, 3 node(s) didn't match pod topology spread constraints."
    );
    let tolerant = spread(ZONE, "DoNotSchedule", json!({"nodeTaintsPolicy": "Honor"}));
    assert!(uneven.choose(web("p", tolerant)).is_err(), "a cordon without the taint is no taint");
}

#[test]
fn nodes_without_the_label_are_out() {
    let cluster = TestCluster::of(&["n"]);
    assert_eq!(
        cluster.refusal(web("p", spread(ZONE, "DoNotSchedule", json!({})))),
        "0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints (missing required label)."
    );
}

#[test]
fn too_few_domains_count_as_empty_domains() {
    let cluster = zones().with("a1", web("w1", json!({}))).with("b1", web("w2", json!({})));
    let with_domains = |least: i32| web("p", spread(ZONE, "DoNotSchedule", json!({"minDomains": least})));
    assert!(cluster.choose(with_domains(2)).is_ok());
    assert!(cluster.choose(with_domains(3)).is_err());
}

#[test]
fn terminating_pods_do_not_count_for_the_spread() {
    let mut ending = web("w1", json!({}));
    ending["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let cluster = zones().with("a1", ending).with("b1", web("w2", json!({})));
    assert_eq!(cluster.choose(web("p", spread(ZONE, "DoNotSchedule", json!({})))), Ok("a2".into()));
}

#[test]
fn a_preferred_spread_chooses_the_emptier_domain() {
    let cluster = zones().with("a1", web("w1", json!({})));
    assert_eq!(cluster.choose(web("p", spread(ZONE, "ScheduleAnyway", json!({})))), Ok("b1".into()));
}

#[test]
fn replicas_spread_over_nodes_without_being_asked() {
    let mut cluster = TestCluster::default();
    for name in ["a", "b", "c"] {
        cluster = cluster.resources(name, json!({"cpu": "100", "memory": "100Gi", "pods": "100"}));
    }
    let mut nodes = Vec::new();
    for n in 0..6 {
        let name = format!("w{n}");
        let node = cluster.choose(web(&name, json!({}))).unwrap();
        cluster.place(&node, web(&name, json!({})));
        nodes.push(node);
    }
    assert_eq!(nodes, ["a", "b", "c", "a", "b", "c"]);
}

#[test]
fn a_lenient_pod_ignores_affinity_and_spread() {
    let apart = || required("podAntiAffinity", json!([term("web", HOST)]));
    let cluster = TestCluster::of(&["n"]).with("n", web("first", apart()));
    let decision = cluster.decide_as(web("second", apart()), None, false);
    assert!(matches!(&decision, Decision::Bind(node) if node == "n"), "{decision:?}");
}
