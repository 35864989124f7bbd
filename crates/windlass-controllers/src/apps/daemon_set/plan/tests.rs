use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use super::*;

fn set(spec: Value) -> DaemonSet {
    let mut base = json!({
        "selector": {"matchLabels": {"app": "d"}},
        "template": {"metadata": {"labels": {"app": "d"}}, "spec": {"containers": []}},
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}},
    });
    base.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let metadata = json!({"name": "d", "namespace": "n", "uid": "u", "generation": 2});
    serde_json::from_value(json!({"metadata": metadata, "spec": base})).unwrap()
}

fn node(name: &str, taints: Value) -> Arc<Node> {
    let metadata = json!({"name": name, "labels": {"name": name}});
    Arc::new(serde_json::from_value(json!({"metadata": metadata, "spec": {"taints": taints}})).unwrap())
}

fn pod(name: &str, node: &str, hash: &str, ready: bool) -> Arc<Pod> {
    let ready = if ready { "True" } else { "False" };
    Arc::new(
        serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "n", "labels": {"controller-revision-hash": hash}},
            "spec": {"containers": [], "nodeName": node},
            "status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
        }))
        .unwrap(),
    )
}

fn next(set: &DaemonSet, nodes: &[Arc<Node>], pods: &[Arc<Pod>]) -> Plan {
    let now = "2026-01-01T00:00:30Z".parse().unwrap();
    plan(Input { set, nodes, pods, hash: "new", now }, &mut Failures::default())
}

fn deleted(plan: &Plan) -> Vec<&str> {
    plan.delete.iter().map(|pod| pod.metadata.name.as_deref().unwrap()).collect()
}

#[test]
fn every_node_that_it_tolerates_and_selects_gets_a_pod() {
    let no_schedule = json!([{"key": "k", "effect": "NoSchedule"}]);
    let cordoned = json!([{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]);
    let nodes = [node("a", json!([])), node("b", no_schedule), node("c", cordoned)];
    let plain = next(&set(json!({})), &nodes, &[]);
    assert_eq!(plain.create, ["a", "c"]);
    assert_eq!((plain.status.desired_number_scheduled, plain.status.number_unavailable), (2, Some(2)));
    let chosen = json!({"template": {"spec": {"containers": [], "nodeSelector": {"name": "c"}}}});
    assert_eq!(next(&set(chosen), &nodes, &[]).create, ["c"]);
}

#[test]
fn a_pod_stays_on_a_tainted_node_unless_the_taint_evicts_it() {
    let taint = |effect: &str| [node("a", json!([{"key": "k", "effect": effect}]))];
    let there = [pod("p", "a", "new", true)];
    let stays = next(&set(json!({})), &taint("NoSchedule"), &there);
    assert_eq!((stays.delete.len(), stays.status.number_misscheduled), (0, 1));
    assert_eq!(deleted(&next(&set(json!({})), &taint("NoExecute"), &there)), ["p"]);
}

#[test]
fn a_rolling_update_replaces_as_many_as_may_be_unavailable() {
    let nodes = [node("a", json!([])), node("b", json!([])), node("c", json!([]))];
    let old = |name: &str, ready| pod(name, name, "old", ready);
    let pods = [old("a", true), old("b", true), old("c", true)];
    assert_eq!(deleted(&next(&set(json!({})), &nodes, &pods)), ["a"]);
    let broken = [old("a", true), old("b", false), old("c", true)];
    assert_eq!(deleted(&next(&set(json!({})), &nodes, &broken)), ["b"], "the broken one goes first");
    let manual = set(json!({"updateStrategy": {"type": "OnDelete"}}));
    assert_eq!(deleted(&next(&manual, &nodes, &pods)), Vec::<&str>::new());
}

#[test]
fn with_a_surge_the_new_pod_comes_before_the_old_one_goes() {
    let rolling = json!({"maxSurge": 1, "maxUnavailable": 0});
    let set = set(json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}));
    let nodes = [node("a", json!([])), node("b", json!([]))];
    let (a, b) = (pod("a", "a", "old", true), pod("b", "b", "old", true));
    assert_eq!(next(&set, &nodes, &[a.clone(), b.clone()]).create, ["a"]);
    let starting = next(&set, &nodes, &[a.clone(), b.clone(), pod("a2", "a", "new", false)]);
    assert_eq!((starting.create.len(), starting.delete.len()), (0, 0));
    assert_eq!(deleted(&next(&set, &nodes, &[a, b, pod("a2", "a", "new", true)])), ["a"]);
}

#[test]
fn a_pod_that_ended_is_told_of_and_deleted() {
    let mut failed = (*pod("p", "a", "new", false)).clone();
    failed.status.as_mut().unwrap().phase = Some("Failed".to_owned());
    let plan = next(&set(json!({})), &[node("a", json!([]))], &[Arc::new(failed)]);
    assert_eq!(deleted(&plan), ["p"]);
    assert_eq!(plan.events[0].reason, "FailedDaemonPod");
}

/// An event in the life of a DaemonSet: a pod or a node changes, the template changes, or the controller runs.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Ready(usize),
    Unready(usize),
    Failed(usize),
    /// The kubelet removes a pod that is terminating.
    Gone(usize),
    Cordoned(usize),
    NewTemplate,
    Reconcile,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (0..8_usize).prop_map(Happens::Ready),
        1 => (0..8_usize).prop_map(Happens::Unready),
        1 => (0..8_usize).prop_map(Happens::Failed),
        3 => (0..8_usize).prop_map(Happens::Gone),
        1 => (0..5_usize).prop_map(Happens::Cordoned),
        1 => Just(Happens::NewTemplate),
        6 => Just(Happens::Reconcile),
    ]
}

/// A DaemonSet, the nodes, and the pods. The pods of the cluster are seen at once, and their statuses lag.
struct World {
    set: DaemonSet,
    nodes: Vec<Arc<Node>>,
    pods: Vec<Arc<Pod>>,
    template: usize,
    created: usize,
    /// How many pods have been created and deleted.
    changes: usize,
    bounds: Bounds,
}

/// `maxSurge` and `maxUnavailable`.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    surge: usize,
    unavailable: usize,
}

impl World {
    fn new(nodes: usize, bounds: Bounds) -> Self {
        let rolling = json!({"maxSurge": bounds.surge, "maxUnavailable": bounds.unavailable});
        let strategy = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}});
        let nodes = (0..nodes).map(|index| node(&format!("n{index}"), json!([]))).collect();
        Self { set: set(strategy), nodes, pods: Vec::new(), template: 0, created: 0, changes: 0, bounds }
    }

    fn hash(&self) -> String {
        format!("t{}", self.template)
    }

    fn change(&mut self, index: usize, change: impl FnOnce(&mut Pod)) {
        if let Some(place) = self.pods.get_mut(index) {
            let mut pod = Pod::clone(place);
            change(&mut pod);
            *place = Arc::new(pod);
        }
    }

    fn set_ready(&mut self, index: usize, ready: bool) {
        let fresh = pod("p", "n", "h", ready).status.clone();
        self.change(index, |pod| {
            if pods::is_active(pod) {
                pod.status = fresh;
            }
        });
    }

    fn happen(&mut self, event: Happens) -> Result<(), TestCaseError> {
        match event {
            Happens::Ready(index) => self.set_ready(index, true),
            Happens::Unready(index) => self.set_ready(index, false),
            Happens::Failed(index) => self.change(index, |pod| {
                pod.status.as_mut().unwrap().phase = Some("Failed".to_owned());
                pod.status.as_mut().unwrap().conditions = None;
            }),
            Happens::Gone(index) => {
                if self.pods.get(index).is_some_and(|pod| pods::is_terminating(pod)) {
                    self.pods.remove(index);
                }
            }
            Happens::Cordoned(index) => {
                if let Some(place) = self.nodes.get_mut(index) {
                    let was_tainted = place.spec.as_ref().is_some_and(|spec| spec.taints.is_some());
                    let taints =
                        if was_tainted { json!(null) } else { json!([{"key": "k", "effect": "NoSchedule"}]) };
                    *place = node(&place.name_any(), taints);
                }
            }
            Happens::NewTemplate => self.template += 1,
            Happens::Reconcile => return self.reconcile(),
        }
        Ok(())
    }

    fn alive_on(&self, node: &str) -> Vec<&Arc<Pod>> {
        let is_there = |pod: &&Arc<Pod>| template::node_of(pod) == Some(node) && pods::is_active(pod);
        self.pods.iter().filter(is_there).collect()
    }

    /// Returns how many nodes that a pod belongs on have an available pod. Of two old pods on a node, the controller keeps the older
    /// pod, also if only the younger pod is available: such nodes do not count.
    fn available(&self) -> usize {
        let has_pod = |node: &&Arc<Node>| {
            let alive = self.alive_on(&node.name_any());
            let old = alive.iter().filter(|pod| !self.is_new(pod)).count();
            placement(&self.set, node).run && old <= 1 && alive.iter().any(|pod| pods::is_ready(pod))
        };
        self.nodes.iter().filter(has_pod).count()
    }

    fn is_new(&self, pod: &Pod) -> bool {
        pods::label(pod, "controller-revision-hash") == Some(&self.hash())
    }

    /// Returns how many nodes have a new pod that is not ready beside an old pod that is ready.
    fn surging(&self) -> usize {
        let surges = |node: &&Arc<Node>| {
            let alive = self.alive_on(&node.name_any());
            let starts = alive.iter().any(|pod| self.is_new(pod) && !pods::is_ready(pod));
            starts && alive.iter().any(|pod| !self.is_new(pod) && pods::is_ready(pod))
        };
        self.nodes.iter().filter(surges).count()
    }

    fn reconcile(&mut self) -> Result<(), TestCaseError> {
        let (before, surging) = (self.available(), self.surging());
        let hash = self.hash();
        let now = "2026-01-01T00:00:30Z".parse().unwrap();
        let input = Input { set: &self.set, nodes: &self.nodes, pods: &self.pods, hash: &hash, now };
        let plan = plan(input, &mut Failures::default());
        self.changes += plan.create.len() + plan.delete.len();
        for gone in &plan.delete {
            prop_assert!(!pods::is_terminating(gone), "{} is deleted twice", gone.name_any());
            let index = self.pods.iter().position(|pod| pod.name_any() == gone.name_any()).unwrap();
            let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now);
            self.change(index, |pod| pod.metadata.deletion_timestamp = Some(now));
        }
        for node in &plan.create {
            self.created += 1;
            let mut new = Pod::clone(&pod(&format!("p{}", self.created), node, &hash, false));
            new.status.as_mut().unwrap().phase = Some("Pending".to_owned());
            self.pods.push(Arc::new(new));
        }
        let desired = self.nodes.iter().filter(|node| placement(&self.set, node).run).count();
        let unavailable = if self.bounds.surge == 0 { self.bounds.unavailable.max(1) } else { 0 };
        let after = self.available();
        let least = desired.saturating_sub(unavailable);
        prop_assert!(
            after >= before.min(least),
            "{after} of {desired} nodes have an available pod, and {before} had"
        );
        prop_assert!(self.surging() <= surging.max(self.bounds.surge), "{} nodes surge", self.surging());
        for node in &self.nodes {
            let alive = self.alive_on(&node.name_any()).len();
            let most = if self.bounds.surge == 0 { 1 } else { 2 };
            prop_assert!(alive <= most, "{} has {alive} pods", node.name_any());
        }
        Ok(())
    }

    /// Lets the kubelet finish the work after each reconcile, until nothing changes.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        let mut idle = 0;
        for _ in 0..60 {
            let before = self.changes;
            self.reconcile()?;
            // A pod may become ready after the first idle reconcile.
            idle = if self.changes == before { idle + 1 } else { 0 };
            if idle == 2 {
                break;
            }
            self.pods.retain(|pod| !pods::is_terminating(pod));
            (0..self.pods.len()).for_each(|index| self.set_ready(index, true));
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_status_that_lags_never_breaks_the_bounds(
        nodes in 1..5_usize,
        surge in 0..3_usize,
        unavailable in 0..3_usize,
        events in prop::collection::vec(happens(), 0..80),
    ) {
        let unavailable = if surge == 0 { unavailable } else { 0 };
        let mut world = World::new(nodes, Bounds { surge, unavailable });
        for event in events {
            world.happen(event)?;
        }
        world.settle()?;
        let hash = world.hash();
        for node in &world.nodes {
            let alive = world.alive_on(&node.name_any());
            if placement(&world.set, node).run {
                prop_assert_eq!(alive.len(), 1);
                prop_assert_eq!(pods::label(alive[0], "controller-revision-hash"), Some(hash.as_str()));
            }
        }
    }
}

#[test]
fn conditions_of_other_writers_stay() {
    let mut set = set(json!({}));
    let status = json!({
        "currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0,
        "conditions": [{"type": "Mine", "status": "True"}],
    });
    set.status = serde_json::from_value(status).unwrap();
    let kept = next(&set, &[], &[]).status.conditions.unwrap_or_default();
    assert_eq!(kept.iter().map(|condition| condition.type_.as_str()).collect::<Vec<_>>(), ["Mine"]);
}
