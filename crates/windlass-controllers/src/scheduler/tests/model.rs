//! Affinity and spread against a model that looks at every pod.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::cluster::TestCluster;
use crate::scheduler::decision::Decision;

const ZONE: &str = "zone";
const HOST: &str = "kubernetes.io/hostname";

/// A required term about pods with a label `app` in the pod's own namespace or in all namespaces.
#[derive(Clone, Debug)]
struct Term {
    repels: bool,
    app: u8,
    by_zone: bool,
    everywhere: bool,
}

#[derive(Clone, Debug)]
struct Constraint {
    max_skew: i64,
    by_zone: bool,
    app: u8,
    min_domains: Option<i64>,
}

#[derive(Clone, Debug)]
struct ModelPod {
    namespace: u8,
    app: u8,
    node: usize,
    terms: Vec<Term>,
    spread: Vec<Constraint>,
    is_terminating: bool,
}

/// The zone of each node; `None` has no label.
type Nodes = Vec<Option<u8>>;

fn term() -> impl Strategy<Value = Term> {
    (any::<bool>(), 0..3_u8, any::<bool>(), any::<bool>())
        .prop_map(|(repels, app, by_zone, everywhere)| Term { repels, app, by_zone, everywhere })
}

fn constraint() -> impl Strategy<Value = Constraint> {
    (1..3_i64, any::<bool>(), 0..3_u8, prop::option::of(1..4_i64))
        .prop_map(|(max_skew, by_zone, app, min_domains)| Constraint { max_skew, by_zone, app, min_domains })
}

fn pod() -> impl Strategy<Value = ModelPod> {
    let terms = prop_oneof![3 => Just(Vec::new()), 2 => vec(term(), 1..3)];
    (0..2_u8, 0..3_u8, 0..5_usize, terms, vec(constraint(), 0..2), prop::bool::weighted(0.2)).prop_map(
        |(namespace, app, node, terms, spread, is_terminating)| ModelPod {
            namespace,
            app,
            node,
            terms,
            spread,
            is_terminating,
        },
    )
}

fn key(by_zone: bool) -> &'static str {
    if by_zone { ZONE } else { HOST }
}

fn selector(app: u8) -> Value {
    json!({"matchLabels": {"app": app.to_string()}})
}

impl ModelPod {
    fn json(&self, name: &str) -> Value {
        let of = |repels: bool| -> Vec<Value> {
            let terms = self.terms.iter().filter(|term| term.repels == repels);
            let term = |term: &Term| {
                let mut json = json!({"labelSelector": selector(term.app), "topologyKey": key(term.by_zone)});
                if term.everywhere {
                    json["namespaceSelector"] = json!({});
                }
                json
            };
            terms.map(term).collect()
        };
        let constraint = |c: &Constraint| {
            json!({
                "maxSkew": c.max_skew, "topologyKey": key(c.by_zone), "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector(c.app), "minDomains": c.min_domains,
            })
        };
        let spread: Vec<Value> = self.spread.iter().map(constraint).collect();
        let rule = |terms| json!({"requiredDuringSchedulingIgnoredDuringExecution": terms});
        json!({
            "metadata": {
                "name": name, "namespace": format!("ns{}", self.namespace), "uid": name,
                "labels": {"app": self.app.to_string()},
                "deletionTimestamp": self.is_terminating.then_some("2026-01-01T00:00:00Z"),
            },
            "spec": {
                "containers": [{"name": "c"}], "topologySpreadConstraints": spread,
                "affinity": {"podAffinity": rule(of(false)), "podAntiAffinity": rule(of(true))},
            },
        })
    }

    fn selects(&self, term: &Term, other: &Self) -> bool {
        other.app == term.app && (term.everywhere || other.namespace == self.namespace)
    }
}

/// Returns the value of the label of a node.
fn domain(nodes: &Nodes, node: usize, by_zone: bool) -> Option<String> {
    if by_zone { nodes[node].map(|zone| zone.to_string()) } else { Some(node.to_string()) }
}

fn are_together(nodes: &Nodes, a: usize, b: usize, by_zone: bool) -> bool {
    let (a, b) = (domain(nodes, a, by_zone), domain(nodes, b, by_zone));
    a.is_some() && a == b
}

fn satisfies_affinity(nodes: &Nodes, pods: &[ModelPod], pod: &ModelPod, node: usize) -> bool {
    let wants: Vec<&Term> = pod.terms.iter().filter(|term| !term.repels).collect();
    if wants.iter().any(|term| domain(nodes, node, term.by_zone).is_none()) {
        return false;
    }
    let is_wanted = |other: &ModelPod| wants.iter().all(|term| pod.selects(term, other));
    let has_all = wants.iter().all(|term| {
        pods.iter().any(|other| is_wanted(other) && are_together(nodes, other.node, node, term.by_zone))
    });
    let counts = |other: &ModelPod| {
        is_wanted(other) && wants.iter().any(|term| domain(nodes, other.node, term.by_zone).is_some())
    };
    has_all || (!pods.iter().any(counts) && is_wanted(pod))
}

fn is_repelled(nodes: &Nodes, pods: &[ModelPod], pod: &ModelPod, node: usize) -> bool {
    let repels = |from: &ModelPod, other: &ModelPod, place: usize| {
        let mut terms = from.terms.iter().filter(|term| term.repels);
        terms.any(|term| from.selects(term, other) && are_together(nodes, place, node, term.by_zone))
    };
    pods.iter().any(|other| repels(pod, other, other.node) || repels(other, pod, other.node))
}

fn satisfies_spread(nodes: &Nodes, pods: &[ModelPod], pod: &ModelPod, node: usize) -> bool {
    let has_all = |node: usize| pod.spread.iter().all(|c| domain(nodes, node, c.by_zone).is_some());
    pod.spread.iter().all(|constraint| {
        let Some(own) = domain(nodes, node, constraint.by_zone) else { return false };
        let mut counts: BTreeMap<String, i64> = BTreeMap::new();
        for node in (0..nodes.len()).filter(|node| has_all(*node)) {
            let count = pods.iter().filter(|other| {
                other.node == node
                    && other.namespace == pod.namespace
                    && other.app == constraint.app
                    && !other.is_terminating
            });
            *counts.entry(domain(nodes, node, constraint.by_zone).unwrap()).or_default() +=
                i64::try_from(count.count()).unwrap();
        }
        let is_small = i64::try_from(counts.len()).unwrap() < constraint.min_domains.unwrap_or(1);
        let least = if is_small { 0 } else { counts.values().copied().min().unwrap_or(0) };
        let own = counts.get(&own).copied().unwrap_or(0) + i64::from(pod.app == constraint.app);
        own - least <= constraint.max_skew
    })
}

fn build(nodes: &Nodes, pods: &[ModelPod]) -> TestCluster {
    let mut cluster = TestCluster::default().namespace("ns0", json!({})).namespace("ns1", json!({}));
    for (index, zone) in nodes.iter().enumerate() {
        let labels = zone.map_or(json!({}), |zone| json!({ZONE: zone.to_string()}));
        cluster = cluster.node(&index.to_string(), labels, json!({}));
    }
    for (index, pod) in pods.iter().enumerate() {
        cluster.place(&pod.node.to_string(), pod.json(&format!("p{index}")));
    }
    cluster
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_pod_goes_exactly_where_the_model_allows(
        nodes in vec(prop::option::weighted(0.9, 0..3_u8), 1..5),
        pods in vec(pod(), 0..8),
        new in pod(),
        removed in vec(any::<bool>(), 8),
    ) {
        let on_nodes = |pod: &ModelPod| ModelPod { node: pod.node % nodes.len(), ..pod.clone() };
        let pods: Vec<ModelPod> = pods.iter().map(on_nodes).collect();
        let mut cluster = build(&nodes, &pods);
        let mut left = Vec::new();
        for (index, pod) in pods.iter().enumerate() {
            if removed[index] && index % 2 == 0 {
                let key = windlass_runtime::ObjectKey::namespaced(
                    &format!("ns{}", pod.namespace), &format!("p{index}"),
                );
                prop_assert!(cluster.cluster.remove(&key));
            } else {
                left.push(pod.clone());
            }
        }
        let allowed: Vec<String> = (0..nodes.len())
            .filter(|node| {
                satisfies_affinity(&nodes, &left, &new, *node)
                    && !is_repelled(&nodes, &left, &new, *node)
                    && satisfies_spread(&nodes, &left, &new, *node)
            })
            // The nodes have room for two pods.
            .filter(|node| left.iter().filter(|pod| pod.node == *node).count() < 2)
            .map(|node| node.to_string())
            .collect();
        let mut incoming = new.json("new");
        incoming["metadata"]["deletionTimestamp"] = Value::Null;
        prop_assert_eq!(cluster.allowed(incoming.clone()), allowed.clone());
        match cluster.decide(incoming) {
            Decision::Bind(node) => prop_assert!(allowed.contains(&node), "{node} of {allowed:?}"),
            Decision::Wait(_) => prop_assert!(allowed.is_empty(), "none of {allowed:?}"),
        }
    }
}
