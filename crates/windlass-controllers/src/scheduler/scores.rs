//! The choice among the nodes that can take a pod.
//!
//! The scores and weights are those of kube-scheduler, with two exceptions. A pod without topology spread constraints
//! avoids nodes with pods of the same class, in place of the pods of the same Service or controller; the balance
//! of resources and the locality of images do not count.

use super::cluster::{Cluster, NodeRef};
use super::filters::{Request, free_percent};
use super::pod_affinity::PreferredAffinity;
use super::requests::PODS;
use super::spread::PreferredSpread;
use crate::node_fit::{avoiding_taints, preference};

const BEST: i64 = 100;
const TAINTS_WEIGHT: i64 = 3;
const NODE_AFFINITY_WEIGHT: i64 = 2;
const SPREAD_WEIGHT: i64 = 2;
const POD_AFFINITY_WEIGHT: i64 = 2;

/// Returns the best of the nodes. Of equal nodes, the node with the fewest pods wins, then the first by name.
pub(super) fn best<'a>(nodes: &[NodeRef<'a>], request: Request<'a>, cluster: &'a Cluster) -> Option<&'a str> {
    if let [only] = nodes {
        return Some(&only.facts.name);
    }
    let total = totals(nodes, request, cluster);
    let pods = |node: &NodeRef<'_>| node.state.requested.amount(PODS);
    let ranked = nodes.iter().zip(total);
    let best = ranked.min_by_key(|(node, score)| (-score, pods(node), &node.facts.name));
    best.map(|(node, _)| node.facts.name.as_str())
}

fn totals<'a>(nodes: &[NodeRef<'a>], request: Request<'a>, cluster: &'a Cluster) -> Vec<i64> {
    let mut totals: Vec<i64> =
        nodes.iter().map(|node| free_percent(*node, &request.facts.requests)).collect();
    let taints = |node: &NodeRef<'_>| {
        i64::try_from(avoiding_taints(&node.facts.taints, request.tolerations())).unwrap_or(BEST)
    };
    let affinity = |node: &NodeRef<'_>| preference(request.pod, &node.facts.name, &node.facts.labels);
    add(&mut totals, TAINTS_WEIGHT, fewest(nodes.iter().map(taints).collect()));
    add(&mut totals, NODE_AFFINITY_WEIGHT, most(nodes.iter().map(affinity).collect()));
    if request.is_strict {
        let affinity = PreferredAffinity::new(request.facts, cluster);
        if !affinity.is_empty() {
            let weights = nodes.iter().map(|node| affinity.weight(node.facts)).collect();
            add(&mut totals, POD_AFFINITY_WEIGHT, between(weights));
        }
    }
    add(&mut totals, SPREAD_WEIGHT, spread(nodes, request, cluster));
    totals
}

/// Returns the scores for the spread of the pod.
fn spread<'a>(nodes: &[NodeRef<'a>], request: Request<'a>, cluster: &'a Cluster) -> Vec<i64> {
    let declared = PreferredSpread::new(request.pod, request.facts, cluster);
    if declared.is_empty() || !request.is_strict {
        let counts = cluster.counts_of(&request.facts.class);
        let live =
            |node: &NodeRef<'_>| counts.and_then(|counts| counts.get(&node.facts.name)).map_or(0, |c| c.live);
        return fewer(nodes.iter().map(|node| Some(live(node))).collect());
    }
    #[expect(clippy::cast_possible_truncation, reason = "a load is far below 2^53")]
    fewer(nodes.iter().map(|node| declared.load(node.facts).map(|load| load.round() as i64)).collect())
}

fn add(totals: &mut [i64], weight: i64, scores: Vec<i64>) {
    for (total, score) in totals.iter_mut().zip(scores) {
        *total += weight * score;
    }
}

/// The largest number is best, zero is worst.
fn most(numbers: Vec<i64>) -> Vec<i64> {
    let largest = numbers.iter().copied().max().unwrap_or_default();
    numbers.into_iter().map(|number| if largest > 0 { BEST * number / largest } else { 0 }).collect()
}

/// Zero is best, the largest number is worst.
fn fewest(numbers: Vec<i64>) -> Vec<i64> {
    most(numbers).into_iter().map(|score| BEST - score).collect()
}

/// The smallest number is best; the score falls with the number. `None` is worst.
fn fewer(numbers: Vec<Option<i64>>) -> Vec<i64> {
    let largest = numbers.iter().flatten().copied().max().unwrap_or_default();
    let smallest = numbers.iter().flatten().copied().min().unwrap_or_default();
    let score = |number: i64| if largest > 0 { BEST * (largest + smallest - number) / largest } else { BEST };
    numbers.into_iter().map(|number| number.map_or(0, score)).collect()
}

/// The largest number is best, the smallest is worst, and both may be negative.
fn between(numbers: Vec<i64>) -> Vec<i64> {
    let largest = numbers.iter().copied().max().unwrap_or_default();
    let smallest = numbers.iter().copied().min().unwrap_or_default();
    let range = largest.saturating_sub(smallest);
    let score = |number: i64| if range > 0 { BEST.saturating_mul(number - smallest) / range } else { 0 };
    numbers.into_iter().map(score).collect()
}
