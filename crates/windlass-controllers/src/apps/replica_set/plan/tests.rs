use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use super::*;

fn set(replicas: i32) -> ReplicaSet {
    serde_json::from_value(json!({
        "metadata": {"name": "s", "generation": 4},
        "spec": {"replicas": replicas, "selector": {}, "template": {"metadata": {"labels": {"app": "a"}}}},
    }))
    .unwrap()
}

fn pod(name: &str, change: Value) -> Arc<Pod> {
    let mut pod = json!({
        "metadata": {"name": name, "labels": {"app": "a"}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"containers": [], "nodeName": "n"},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    merge(&mut pod, change);
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn merge(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change,
    }
}

fn now() -> Timestamp {
    "2026-01-01T00:00:30Z".parse().unwrap()
}

fn next(set: &ReplicaSet, pods: &[Arc<Pod>]) -> Plan {
    plan(set, pods, &[], now())
}

fn deleted(plan: &Plan) -> Vec<&str> {
    plan.delete.iter().map(|pod| pod.metadata.name.as_deref().unwrap()).collect()
}

#[test]
fn it_makes_what_is_missing() {
    let plan = next(&set(3), &[pod("a", json!({}))]);
    assert_eq!((plan.create, plan.delete.len()), (2, 0));
    assert_eq!((plan.status.replicas, plan.status.ready_replicas), (1, Some(1)));
    assert_eq!(plan.status.observed_generation, Some(4));
}

#[test]
fn pods_that_ended_or_leave_do_not_count() {
    let ended = pod("a", json!({"status": {"phase": "Failed"}}));
    let leaving = pod("b", json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
    assert_eq!(next(&set(1), &[ended, leaving]).create, 1);
}

#[test]
fn the_least_useful_pods_go_first() {
    let pods = [
        pod("old", json!({})),
        pod("young", json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:09Z"}})),
        pod(
            "dear",
            json!({"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "5"}}}),
        ),
        pod("unready", json!({"status": {"conditions": []}})),
        pod("pending", json!({"status": {"phase": "Pending", "conditions": []}})),
        pod(
            "unplaced",
            json!({"spec": {"nodeName": null}, "status": {"phase": "Pending", "conditions": []}}),
        ),
    ];
    let plan = next(&set(0), &pods);
    assert_eq!(deleted(&plan), ["unplaced", "pending", "unready", "young", "old", "dear"]);
}

#[test]
fn of_two_pods_the_pod_with_more_relatives_on_the_node_goes_first() {
    let on = |node: &str| json!({"spec": {"nodeName": node}});
    let pods = [pod("a", on("x")), pod("b", on("y")), pod("c", on("z"))];
    let others = [pod("d", on("y")), pod("e", on("z")), pod("f", on("z"))];
    let related: Vec<Arc<Pod>> = pods.iter().chain(&others).cloned().collect();
    assert_eq!(deleted(&plan(&set(1), &pods, &related, now())), ["c", "b"]);
    assert_eq!(deleted(&plan(&set(1), &pods, &[], now())), ["a", "b"]);
}

#[test]
fn a_ready_pod_is_available_after_min_ready_seconds() {
    let mut set = set(1);
    set.spec.as_mut().unwrap().min_ready_seconds = Some(60);
    let plan = next(&set, &[pod("a", json!({}))]);
    assert_eq!((plan.status.ready_replicas, plan.status.available_replicas), (Some(1), None));
    assert_eq!(plan.wake_at, Some("2026-01-01T00:01:00Z".parse().unwrap()));
}

#[test]
fn a_set_on_its_way_out_touches_no_pod() {
    let mut set = set(3);
    set.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now()));
    let plan = next(&set, &[pod("a", json!({}))]);
    assert_eq!((plan.create, plan.delete.len()), (0, 0));
}

/// An event in the life of a set: a pod changes, the set changes, or the controller runs.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Ready(usize),
    Unready(usize),
    Failed(usize),
    /// The kubelet removes a pod that is terminating.
    Gone,
    Scaled(i32),
    Reconcile,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        3 => (0..12_usize).prop_map(Happens::Ready),
        1 => (0..12_usize).prop_map(Happens::Unready),
        1 => (0..12_usize).prop_map(Happens::Failed),
        1 => Just(Happens::Gone),
        1 => (0..8_i32).prop_map(Happens::Scaled),
        4 => Just(Happens::Reconcile),
    ]
}

/// A set and the pods of the set. The status of the set is never written: a plan must not need the status.
struct World {
    set: ReplicaSet,
    pods: Vec<Arc<Pod>>,
    created: usize,
}

impl World {
    fn change(&mut self, index: usize, change: Value) {
        let Some(place) = self.pods.get(index).filter(|pod| pods::is_active(pod)) else { return };
        let mut next = serde_json::to_value(&**place).unwrap();
        merge(&mut next, change);
        self.pods[index] = Arc::new(serde_json::from_value(next).unwrap());
    }

    fn happen(&mut self, event: Happens) -> Result<(), TestCaseError> {
        let condition = |status: &str| {
            json!({"status": {"phase": "Running", "conditions": [
                {"type": "Ready", "status": status, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
        };
        match event {
            Happens::Ready(index) => self.change(index, condition("True")),
            Happens::Unready(index) => self.change(index, condition("False")),
            Happens::Failed(index) => self.change(index, json!({"status": {"phase": "Failed"}})),
            Happens::Gone => self.pods.retain(|pod| !pods::is_terminating(pod)),
            Happens::Scaled(replicas) => self.set.spec.as_mut().unwrap().replicas = Some(replicas),
            Happens::Reconcile => return self.reconcile(),
        }
        Ok(())
    }

    fn reconcile(&mut self) -> Result<(), TestCaseError> {
        let wanted = usize::try_from(self.set.spec.as_ref().unwrap().replicas.unwrap()).unwrap();
        let active: Vec<&Arc<Pod>> = self.pods.iter().filter(|pod| pods::is_active(pod)).collect();
        let ready = active.iter().filter(|pod| pods::is_ready(pod)).count();
        let plan = plan(&self.set, &self.pods, &[], now());
        prop_assert_eq!(plan.create, wanted.saturating_sub(active.len()));
        prop_assert_eq!(plan.delete.len(), active.len().saturating_sub(wanted));
        prop_assert_eq!(plan.status.replicas, count(active.len()));
        prop_assert_eq!(plan.status.ready_replicas, nonzero(ready));
        // A ready pod goes only if the other pods are not enough.
        let ready_deleted = plan.delete.iter().filter(|pod| pods::is_ready(pod)).count();
        prop_assert_eq!(ready_deleted, ready.saturating_sub(wanted));
        for pod in &plan.delete {
            let index = self.pods.iter().position(|other| other.metadata.name == pod.metadata.name).unwrap();
            prop_assert!(pods::is_active(pod), "{} is deleted twice", pod.metadata.name.as_deref().unwrap());
            self.change(index, json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}));
        }
        for _ in 0..plan.create {
            self.created += 1;
            let pending = json!({"status": {"phase": "Pending", "conditions": []}});
            self.pods.push(pod(&format!("p{}", self.created), pending));
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_set_has_as_many_pods_as_it_wants_whatever_happens_to_the_pods(
        replicas in 0..8_i32,
        events in prop::collection::vec(happens(), 0..60),
    ) {
        let mut world = World { set: set(replicas), pods: Vec::new(), created: 0 };
        for event in events {
            world.happen(event)?;
        }
        world.reconcile()?;
        let active = world.pods.iter().filter(|pod| pods::is_active(pod)).count();
        prop_assert_eq!(Some(count(active)), world.set.spec.as_ref().unwrap().replicas);
    }

    #[test]
    fn a_reconcile_creates_and_deletes_at_most_a_burst(wanted in 0..2000_i32, active in 0..1200_usize) {
        let one = pod("a", json!({}));
        let pods = vec![one; active];
        let plan = next(&set(wanted), &pods);
        let wanted = usize::try_from(wanted).unwrap();
        prop_assert_eq!(plan.create, wanted.saturating_sub(active).min(500));
        prop_assert_eq!(plan.delete.len(), active.saturating_sub(wanted).min(500));
    }
}
