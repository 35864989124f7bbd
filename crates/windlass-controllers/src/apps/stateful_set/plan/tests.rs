use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use super::*;

fn set(change: Value) -> StatefulSet {
    let mut set = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "u", "generation": 3},
        "spec": {
            "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "serviceName": "web",
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        },
    });
    json_patch(&mut set, change);
    serde_json::from_value(set).unwrap()
}

fn json_patch(into: &mut Value, change: Value) {
    match (into, change) {
        (Value::Object(into), Value::Object(change)) => {
            for (key, value) in change {
                json_patch(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into, change) => *into = change,
    }
}

fn pod(ordinal: i32, revision: &str, change: Value) -> Arc<Pod> {
    let name = format!("web-{ordinal}");
    let mut pod = json!({
        "metadata": {"name": name, "uid": name, "labels": {
            "app": "web", "controller-revision-hash": revision, "statefulset.kubernetes.io/pod-name": name}},
        "status": {"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    });
    json_patch(&mut pod, change);
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn pending() -> Value {
    json!({"status": {"phase": "Pending", "conditions": []}})
}

fn leaving() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
}

/// Plans for pods with the current revision `old` and the new revision `new`.
fn plan_for(set: &StatefulSet, pods: &[Arc<Pod>], claims: &[PersistentVolumeClaim]) -> Plan {
    plan_as(true, set, pods, claims)
}

fn plan_as(
    counts_unavailable: bool,
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    claims: &[PersistentVolumeClaim],
) -> Plan {
    let template = set.spec.clone().unwrap().template;
    let version = |name: &str| Version { name: name.to_owned(), template: template.clone() };
    let claims = claims.iter().map(|claim| (claim.name_any(), Arc::new(claim.clone()))).collect();
    plan(Input {
        set,
        pods,
        claims: &claims,
        current: &version("old"),
        update: &version("new"),
        collisions: 0,
        counts_unavailable,
        now: "2026-01-01T00:00:30Z".parse().unwrap(),
    })
}

fn shown(plan: &Plan) -> Vec<String> {
    let text = |task: &Task| match task {
        Task::CreateClaim { claim, pod } => format!("claim {} for {pod}", claim.name_any()),
        Task::SetClaimOwners { claim, owners, .. } => {
            let kinds: Vec<&str> = owners.iter().map(|owner| owner.kind.as_str()).collect();
            format!("owners of {}: {kinds:?}", claim.name_any())
        }
        Task::ReportConflict { claim } => format!("conflict {claim}"),
        Task::Create(pod) => format!("create {} {}", pod.name_any(), pod.labels()[POD_REVISION]),
        Task::Update(pod) => format!("update {}", pod.name_any()),
        Task::Delete(pod) => format!("delete {}", pod.name_any()),
        Task::Fail { pod, message } => format!("fail {pod}: {message}"),
    };
    plan.tasks.iter().map(text).collect()
}

fn tasks(set: &StatefulSet, pods: &[Arc<Pod>]) -> Vec<String> {
    shown(&plan_for(set, pods, &[]))
}

#[test]
fn pods_are_created_one_after_the_other() {
    let set = set(json!({}));
    assert_eq!(tasks(&set, &[]), ["create web-0 new"]);
    let nothing: [&str; 0] = [];
    assert_eq!(tasks(&set, &[pod(0, "new", pending())]), nothing, "a stuck pod blocks");
    assert_eq!(tasks(&set, &[pod(0, "new", json!({}))]), ["create web-1 new"]);
}

#[test]
fn in_parallel_all_are_created_at_once() {
    let set = set(json!({"spec": {"podManagementPolicy": "Parallel", "ordinals": {"start": 5}}}));
    assert_eq!(tasks(&set, &[pod(6, "new", pending())]), ["create web-5 new", "create web-7 new"]);
}

#[test]
fn scaling_down_goes_from_the_highest_ordinal_and_waits_for_the_others() {
    let set = set(json!({"spec": {"replicas": 1}}));
    let all =
        |second: Value, last: Value| [pod(0, "new", json!({})), pod(1, "new", second), pod(2, "new", last)];
    let nothing: [&str; 0] = [];
    assert_eq!(tasks(&set, &all(json!({}), json!({}))), ["delete web-2"]);
    assert_eq!(tasks(&set, &all(json!({}), leaving())), nothing);
    assert_eq!(tasks(&set, &all(json!({}), pending())), ["delete web-2"], "the unhealthy one may go");
    assert_eq!(tasks(&set, &all(pending(), pending())), nothing, "not the second unhealthy one");
}

#[test]
fn an_update_goes_backwards_down_to_the_partition() {
    let rolling = set(json!({}));
    let all =
        |revisions: [&str; 3]| [0, 1, 2].map(|n| pod(n, revisions[usize::try_from(n).unwrap()], json!({})));
    assert_eq!(tasks(&rolling, &all(["old", "old", "old"])), ["delete web-2"]);
    assert_eq!(tasks(&rolling, &all(["old", "old", "new"])), ["delete web-1"]);
    let parted = set(json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 2}}}}));
    let nothing: [&str; 0] = [];
    assert_eq!(tasks(&parted, &all(["old", "old", "new"])), nothing);
    assert_eq!(tasks(&parted, &all(["old", "old", "new"])[1..]), ["create web-0 old"], "below the partition");
    let manual = set(json!({"spec": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": null}}}));
    assert_eq!(tasks(&manual, &all(["old", "old", "old"])), nothing);
}

fn rolling(policy: &str, max_unavailable: Value) -> StatefulSet {
    let strategy = json!({"rollingUpdate": {"maxUnavailable": max_unavailable}});
    set(json!({"spec": {"replicas": 4, "podManagementPolicy": policy, "updateStrategy": strategy}}))
}

#[test]
fn an_update_deletes_as_many_pods_as_may_be_unavailable() {
    let old = [0, 1, 2, 3].map(|n| pod(n, "old", json!({})));
    let ordered = |max| plan_for(&rolling("OrderedReady", max), &old, &[]);
    assert_eq!(shown(&ordered(json!(2))), ["delete web-3", "delete web-2"]);
    assert_eq!(shown(&ordered(json!("70%"))), ["delete web-3", "delete web-2"], "percentages round down");
    assert_eq!(shown(&ordered(json!("10%"))), ["delete web-3"], "at least one pod");
    assert_eq!(ordered(json!(2)).status.current_replicas, Some(2));
    let earlier = plan_as(false, &rolling("OrderedReady", json!(2)), &old, &[]);
    assert_eq!(shown(&earlier), ["delete web-3"], "before Kubernetes 1.37");
}

#[test]
fn a_parallel_update_deletes_unavailable_pods_of_the_old_template_first() {
    let parallel = rolling("Parallel", json!(2));
    let all = |broken: [i32; 2]| {
        [0, 1, 2, 3].map(|n| pod(n, "old", if broken.contains(&n) { pending() } else { json!({}) }))
    };
    assert_eq!(tasks(&parallel, &all([0, -1])), ["delete web-0", "delete web-3"]);
    assert_eq!(tasks(&parallel, &all([0, 1])), ["delete web-1", "delete web-0"]);
    let mut stuck = all([0, -1]);
    stuck[3] = pod(3, "new", pending());
    stuck[2] = pod(2, "new", pending());
    assert_eq!(tasks(&parallel, &stuck), ["delete web-0"], "broken new pods use the budget up");
    let earlier = plan_as(false, &parallel, &stuck, &[]);
    assert!(earlier.tasks.is_empty(), "before Kubernetes 1.37");
}

#[test]
fn conditions_of_other_writers_stay() {
    let condition = json!({"type": "Mine", "status": "True"});
    let set = set(json!({"status": {"replicas": 0, "conditions": [condition]}}));
    let kept = plan_for(&set, &[], &[]).status.conditions.unwrap_or_default();
    assert_eq!(kept.iter().map(|condition| condition.type_.as_str()).collect::<Vec<_>>(), ["Mine"]);
}

#[test]
fn the_new_revision_is_current_when_all_pods_have_it() {
    let set = set(json!({}));
    let mixed = [pod(0, "old", json!({})), pod(1, "new", json!({})), pod(2, "new", json!({}))];
    let status = plan_for(&set, &mixed, &[]).status;
    assert_eq!((status.current_replicas, status.updated_replicas), (None, Some(2)), "one is being deleted");
    let done = [0, 1, 2].map(|n| pod(n, "new", json!({})));
    let status = plan_for(&set, &done, &[]).status;
    assert_eq!(status.current_revision.as_deref(), Some("new"));
    assert_eq!((status.current_replicas, status.available_replicas), (Some(3), Some(3)));
}

#[test]
fn a_pod_that_ended_is_deleted_first() {
    let failed = json!({"status": {"phase": "Failed"}});
    assert_eq!(tasks(&set(json!({})), &[pod(0, "new", failed)]), ["delete web-0"]);
}

#[test]
fn a_ready_pod_counts_after_min_ready_seconds() {
    let set = set(json!({"spec": {"minReadySeconds": 60}}));
    let plan = plan_for(&set, &[pod(0, "new", json!({}))], &[]);
    assert_eq!((plan.status.ready_replicas, plan.status.available_replicas), (Some(1), Some(0)));
    assert_eq!(plan.wake_at, Some("2026-01-01T00:01:00Z".parse().unwrap()));
    assert!(plan.tasks.is_empty());
}

#[test]
fn claims_are_made_before_their_pod_and_block_it_while_they_are_terminating() {
    let claims = json!({"spec": {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]}});
    let set = set(claims);
    let plan = plan_for(&set, &[], &[]);
    assert_eq!(shown(&plan), ["claim data-web-0 for web-0", "create web-0 new"]);
    let Task::Create(created) = &plan.tasks[1] else { panic!("no pod") };
    let volume = &created.spec.as_ref().unwrap().volumes.as_ref().unwrap()[0];
    assert_eq!(volume.persistent_volume_claim.as_ref().unwrap().claim_name, "data-web-0");
    let gone: PersistentVolumeClaim = serde_json::from_value(
        json!({"metadata": {"name": "data-web-0", "deletionTimestamp": "2026-01-01T00:00:00Z"}}),
    )
    .unwrap();
    assert_eq!(shown(&plan_for(&set, &[], &[gone])), ["fail web-0: pvc data-web-0 is being deleted"]);
}

#[test]
fn a_set_that_is_being_deleted_touches_nothing() {
    let set = set(leaving());
    assert!(plan_for(&set, &[], &[]).tasks.is_empty());
}

/// An event in the life of a set: a pod changes, the set changes, or the controller runs.
#[derive(Clone, Copy, Debug)]
enum Happens {
    Ready(i32),
    Unready(i32),
    Failed(i32),
    /// The kubelet removes a pod that is terminating.
    Gone(i32),
    Scaled(i32),
    Partition(i32),
    MaxUnavailable(i32),
    NewTemplate,
    Reconcile,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        6 => (0..6_i32).prop_map(Happens::Ready),
        1 => (0..6_i32).prop_map(Happens::Unready),
        1 => (0..6_i32).prop_map(Happens::Failed),
        3 => (0..6_i32).prop_map(Happens::Gone),
        1 => (0..6_i32).prop_map(Happens::Scaled),
        1 => (0..6_i32).prop_map(Happens::Partition),
        1 => (1..4_i32).prop_map(Happens::MaxUnavailable),
        1 => Just(Happens::NewTemplate),
        6 => Just(Happens::Reconcile),
    ]
}

/// A set and the pods of the set. The pods are seen at once, and their statuses lag.
struct World {
    set: StatefulSet,
    pods: BTreeMap<i32, Arc<Pod>>,
    current: String,
    template: usize,
    /// How many pods have been created and deleted.
    changes: usize,
    counts_unavailable: bool,
}

impl World {
    fn new(replicas: i32, policy: &str, counts_unavailable: bool) -> Self {
        let set = set(json!({"spec": {"replicas": replicas, "podManagementPolicy": policy}}));
        let current = "t0".to_owned();
        Self { set, pods: BTreeMap::new(), current, template: 0, changes: 0, counts_unavailable }
    }

    fn spec(&mut self) -> &mut StatefulSetSpec {
        self.set.spec.as_mut().unwrap()
    }

    fn is_ordered(&self) -> bool {
        self.set.spec.as_ref().unwrap().pod_management_policy.as_deref() != Some("Parallel")
    }

    fn replicas(&self) -> i32 {
        self.set.spec.as_ref().unwrap().replicas.unwrap()
    }

    fn partition(&self) -> i32 {
        let strategy = self.set.spec.as_ref().unwrap().update_strategy.as_ref().unwrap();
        strategy.rolling_update.as_ref().unwrap().partition.unwrap()
    }

    fn max_unavailable(&self) -> usize {
        let strategy = self.set.spec.as_ref().unwrap().update_strategy.as_ref().unwrap();
        match strategy.rolling_update.as_ref().unwrap().max_unavailable {
            Some(IntOrString::Int(limit)) if self.counts_unavailable => usize::try_from(limit).unwrap(),
            _ => 1,
        }
    }

    /// Returns how many of the wanted pods are not available.
    fn unavailable(&self) -> usize {
        (0..self.replicas()).filter(|ordinal| !self.is_available(*ordinal)).count()
    }

    fn update(&self) -> String {
        format!("t{}", self.template)
    }

    fn change(&mut self, ordinal: i32, change: Value) {
        let Some(place) = self.pods.get_mut(&ordinal).filter(|pod| pods::is_active(pod)) else { return };
        let mut next = serde_json::to_value(&**place).unwrap();
        json_patch(&mut next, change);
        *place = Arc::new(serde_json::from_value(next).unwrap());
    }

    fn is_available(&self, ordinal: i32) -> bool {
        let pod = self.pods.get(&ordinal);
        pod.is_some_and(|pod| {
            !pods::is_terminating(pod) && pods::phase(pod) == "Running" && pods::is_ready(pod)
        })
    }

    fn happen(&mut self, event: Happens) -> Result<(), TestCaseError> {
        let status = |phase: &str, ready: &str| {
            json!({"status": {"phase": phase, "conditions": [
                {"type": "Ready", "status": ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})
        };
        match event {
            Happens::Ready(ordinal) => self.change(ordinal, status("Running", "True")),
            Happens::Unready(ordinal) => self.change(ordinal, status("Running", "False")),
            Happens::Failed(ordinal) => self.change(ordinal, status("Failed", "False")),
            Happens::Gone(ordinal) => {
                if self.pods.get(&ordinal).is_some_and(|pod| pods::is_terminating(pod)) {
                    self.pods.remove(&ordinal);
                }
            }
            Happens::Scaled(replicas) => self.spec().replicas = Some(replicas),
            Happens::Partition(partition) => {
                let strategy = self.spec().update_strategy.as_mut().unwrap();
                strategy.rolling_update.as_mut().unwrap().partition = Some(partition);
            }
            Happens::MaxUnavailable(limit) => {
                let strategy = self.spec().update_strategy.as_mut().unwrap();
                strategy.rolling_update.as_mut().unwrap().max_unavailable = Some(IntOrString::Int(limit));
            }
            Happens::NewTemplate => self.template += 1,
            Happens::Reconcile => return self.reconcile(),
        }
        Ok(())
    }

    fn reconcile(&mut self) -> Result<(), TestCaseError> {
        let template = self.set.spec.clone().unwrap().template;
        let version = |name: &str| Version { name: name.to_owned(), template: template.clone() };
        let pods: Vec<Arc<Pod>> = self.pods.values().cloned().collect();
        let (current, update) = (version(&self.current), version(&self.update()));
        let plan = plan(Input {
            set: &self.set,
            pods: &pods,
            claims: &BTreeMap::new(),
            current: &current,
            update: &update,
            collisions: 0,
            counts_unavailable: self.counts_unavailable,
            now: "2026-01-01T00:00:30Z".parse().unwrap(),
        });
        let created = plan.tasks.iter().filter_map(|task| match task {
            Task::Create(pod) => Some(pod),
            _ => None,
        });
        let deleted = plan.tasks.iter().filter_map(|task| match task {
            Task::Delete(pod) => Some(pod),
            _ => None,
        });
        let (created, deleted): (Vec<_>, Vec<_>) = (created.collect(), deleted.collect());
        self.changes += created.len() + deleted.len();
        if self.is_ordered() {
            let limit = if created.is_empty() { self.max_unavailable() } else { 1 };
            prop_assert!(created.len() + deleted.len() <= limit, "{} changes at once", plan.tasks.len());
        }
        for pod in created {
            let ordinal = identity::ordinal(pod).unwrap();
            prop_assert!(
                ordinal < self.replicas() && !self.pods.contains_key(&ordinal),
                "{ordinal} is created"
            );
            if self.is_ordered() {
                prop_assert!(
                    (0..ordinal).all(|lower| self.is_available(lower)),
                    "{ordinal} is created too early"
                );
            }
            let revision = if ordinal < self.partition() { &self.current } else { &update.name };
            prop_assert_eq!(pods::label(pod, POD_REVISION), Some(revision.as_str()));
        }
        for pod in &deleted {
            self.check_deletion(pod, &update.name)?;
        }
        if self.counts_unavailable {
            self.check_budget(&deleted)?;
        }
        for task in plan.tasks {
            match task {
                Task::Create(pod) => {
                    let ordinal = identity::ordinal(&pod).unwrap();
                    let mut pod = serde_json::to_value(&*pod).unwrap();
                    json_patch(&mut pod, json!({"status": {"phase": "Pending"}}));
                    self.pods.insert(ordinal, Arc::new(serde_json::from_value(pod).unwrap()));
                }
                Task::Delete(pod) => {
                    let mut leaves = Pod::clone(&pod);
                    leaves.metadata.deletion_timestamp =
                        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                            "2026-01-01T00:00:00Z".parse().unwrap(),
                        ));
                    self.pods.insert(identity::ordinal(&pod).unwrap(), Arc::new(leaves));
                }
                _ => {}
            }
        }
        self.current = plan.status.current_revision.unwrap();
        Ok(())
    }

    /// Checks that a pod may be deleted: the pod has ended, is beyond the replicas, or has an old template.
    fn check_deletion(&self, pod: &Pod, update: &str) -> Result<(), TestCaseError> {
        let ordinal = identity::ordinal(pod).unwrap();
        prop_assert!(!pods::is_terminating(pod), "{ordinal} is deleted twice");
        if pods::has_finished(pod) {
            return Ok(());
        }
        if ordinal >= self.replicas() {
            if self.is_ordered() {
                let highest = self.pods.keys().max().copied();
                prop_assert_eq!(Some(ordinal), highest, "the highest pod goes first");
                let all_run = (0..self.replicas()).all(|lower| self.is_available(lower));
                prop_assert!(all_run, "{} goes while a wanted pod does not run", ordinal);
            }
            return Ok(());
        }
        prop_assert!(pods::label(pod, POD_REVISION) != Some(update), "{ordinal} has the new template");
        prop_assert!(ordinal >= self.partition(), "{ordinal} is below the partition");
        let higher_run = (ordinal + 1..self.replicas()).all(|higher| self.is_available(higher));
        let is_counted = self.counts_unavailable && !self.is_ordered();
        prop_assert!(higher_run || is_counted, "{ordinal} is updated while a higher pod does not run");
        Ok(())
    }

    /// Checks that an update makes no more pods unavailable than allowed, and that no higher pod of an old template is left out.
    fn check_budget(&self, deleted: &[&Arc<Pod>]) -> Result<(), TestCaseError> {
        let ordinals: Vec<i32> = deleted.iter().filter_map(|pod| identity::ordinal(pod)).collect();
        let updated: Vec<i32> = ordinals
            .iter()
            .copied()
            .filter(|ordinal| *ordinal < self.replicas() && self.is_available(*ordinal))
            .collect();
        let budget = self.max_unavailable().saturating_sub(self.unavailable());
        prop_assert!(updated.len() <= budget, "{updated:?} are updated, with a budget of {budget}");
        let Some(lowest) = updated.iter().min() else { return Ok(()) };
        for (ordinal, pod) in self.pods.range(lowest..&self.replicas()) {
            let is_new = pods::label(pod, POD_REVISION) == Some(self.update().as_str());
            let leaves = pods::is_terminating(pod) || ordinals.contains(ordinal);
            prop_assert!(is_new || leaves, "{lowest} is updated before {ordinal}");
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
            // A user deletes ended pods beyond the replicas: as kube-controller-manager, the plan waits for ever for the second
            // such pod.
            let replicas = self.replicas();
            let is_stuck = |ordinal: i32, pod: &Pod| ordinal >= replicas && pods::has_finished(pod);
            self.pods.retain(|ordinal, pod| !pods::is_terminating(pod) && !is_stuck(*ordinal, pod));
            for ordinal in 0..6 {
                self.happen(Happens::Ready(ordinal))?;
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn a_status_that_lags_never_breaks_the_order(
        replicas in 0..6_i32,
        is_parallel in any::<bool>(),
        counts_unavailable in any::<bool>(),
        events in prop::collection::vec(happens(), 0..80),
    ) {
        let policy = if is_parallel { "Parallel" } else { "OrderedReady" };
        let mut world = World::new(replicas, policy, counts_unavailable);
        for event in events {
            world.happen(event)?;
        }
        world.settle()?;
        let ordinals: Vec<i32> = world.pods.keys().copied().collect();
        let wanted: Vec<i32> = (0..world.replicas()).collect();
        prop_assert_eq!(ordinals, wanted);
        for (ordinal, pod) in &world.pods {
            let is_new = pods::label(pod, POD_REVISION) == Some(world.update().as_str());
            prop_assert!(is_new || *ordinal < world.partition(), "{} has an old template", ordinal);
        }
    }
}
