//! The next changes of a StatefulSet's pods and claims, and the next status.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetStatus};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use k8s_openapi::jiff::Timestamp;
use kube_core::ResourceExt;

use super::claims::{self, Owners};
use super::identity;
use crate::apps::controller_revision::POD_REVISION;
use crate::{percent, pods};

/// A change to make.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Task {
    CreateClaim {
        claim: Box<PersistentVolumeClaim>,
        pod: String,
    },
    /// Write the owner references that the retention policy asks for.
    SetClaimOwners {
        claim: Arc<PersistentVolumeClaim>,
        owners: Vec<OwnerReference>,
        pod: String,
    },
    /// Another controller owns the claim: the retention policy does not apply to the claim.
    ReportConflict {
        claim: String,
    },
    Create(Box<Pod>),
    /// Restore the labels and volumes of a pod.
    Update(Box<Pod>),
    Delete(Arc<Pod>),
    /// The pod cannot be created now.
    Fail {
        pod: String,
        message: String,
    },
}

/// A revision of the template.
#[derive(Clone, Debug)]
pub(super) struct Version {
    /// The name of the ControllerRevision.
    pub name: String,
    pub template: PodTemplateSpec,
}

/// The input of a plan.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub set: &'a StatefulSet,
    pub pods: &'a [Arc<Pod>],
    /// All claims of the namespace, by name.
    pub claims: &'a BTreeMap<String, Arc<PersistentVolumeClaim>>,
    pub current: &'a Version,
    pub update: &'a Version,
    pub collisions: i32,
    /// Whether a rolling update counts unavailable pods, up to `maxUnavailable`: since Kubernetes 1.37. An older version updates one pod
    /// after the other.
    pub counts_unavailable: bool,
    pub now: Timestamp,
}

/// The changes to make, and the status to write after the changes.
#[derive(Debug)]
pub(super) struct Plan {
    pub tasks: Vec<Task>,
    pub status: StatefulSetStatus,
    /// When a ready pod becomes available.
    pub wake_at: Option<Timestamp>,
}

/// A pod at an ordinal: an existing pod, or the pod to create.
struct Replica {
    pod: Arc<Pod>,
    exists: bool,
}

/// A step of the plan ends the reconcile if pods are managed in order.
type Flow = std::ops::ControlFlow<()>;

struct Planner<'a> {
    input: Input<'a>,
    spec: StatefulSetSpec,
    ordered: bool,
    tasks: Vec<Task>,
}

/// Plans the next step.
pub(super) fn plan(input: Input<'_>) -> Plan {
    let spec = input.set.spec.clone().unwrap_or_default();
    let ordered = spec.pod_management_policy.as_deref() != Some("Parallel");
    let min_ready = spec.min_ready_seconds;
    let mut planner = Planner { input, spec, ordered, tasks: Vec::new() };
    let mut status = planner.status();
    if input.set.metadata.deletion_timestamp.is_none() && planner.manage().is_continue() {
        planner.roll(&mut status);
    }
    planner.complete_rollout(&mut status);
    let wake_at = pods::next_available(input.pods.iter().map(AsRef::as_ref), min_ready, input.now);
    Plan { tasks: planner.tasks, status, wake_at }
}

impl Planner<'_> {
    fn status(&self) -> StatefulSetStatus {
        let Input { set, pods, now, current, update, .. } = self.input;
        let count = |holds: &dyn Fn(&Pod) -> bool| {
            i32::try_from(pods.iter().filter(|pod| holds(pod)).count()).unwrap_or(i32::MAX)
        };
        let ready = |pod: &Pod| pods::phase(pod) == "Running" && pods::is_ready(pod);
        let of = |version: &Version| {
            let is_of = |pod: &Pod| {
                !pods::is_terminating(pod) && pods::label(pod, POD_REVISION) == Some(version.name.as_str())
            };
            nonzero(count(&is_of))
        };
        StatefulSetStatus {
            observed_generation: set.metadata.generation,
            replicas: count(&|_| true),
            ready_replicas: nonzero(count(&ready)),
            available_replicas: Some(count(&|pod| {
                ready(pod) && pods::is_available(pod, self.spec.min_ready_seconds, now)
            })),
            current_replicas: of(current),
            updated_replicas: of(update),
            current_revision: Some(current.name.clone()),
            update_revision: Some(update.name.clone()),
            collision_count: Some(self.input.collisions),
            conditions: set.status.as_ref().and_then(|status| status.conditions.clone()),
        }
    }

    /// Plans creation, repair and scaling down. Breaks if the rest has to wait.
    fn manage(&mut self) -> Flow {
        for replica in self.replicas() {
            self.or_next(|planner| planner.manage_replica(&replica))?;
        }
        let condemned = self.condemned();
        for pod in &condemned {
            self.set_claim_owners(pod);
        }
        let first_unhealthy = self.first_unavailable(&condemned);
        for pod in &condemned {
            self.or_next(|planner| planner.scale_down(pod, first_unhealthy.as_deref()))?;
        }
        Flow::Continue(())
    }

    /// Runs a step. If pods are managed in parallel, continues with the next pod even if the step has to
    /// wait.
    fn or_next(&mut self, step: impl FnOnce(&mut Self) -> Flow) -> Flow {
        let flow = step(self);
        if self.ordered { flow } else { Flow::Continue(()) }
    }

    fn replicas(&self) -> Vec<Replica> {
        let Input { set, pods, .. } = self.input;
        identity::ordinals(set)
            .map(|ordinal| match pods.iter().find(|pod| identity::ordinal(pod) == Some(ordinal)) {
                Some(pod) => Replica { pod: Arc::clone(pod), exists: true },
                None => Replica { pod: Arc::new(self.missing(ordinal)), exists: false },
            })
            .collect()
    }

    /// Returns the pod to create: of the current revision below the partition, else of the new revision.
    fn missing(&self, ordinal: i32) -> Pod {
        let Input { set, current, update, .. } = self.input;
        let strategy = self.spec.update_strategy.as_ref();
        let rolling = strategy.is_none_or(|strategy| strategy.type_.as_deref() != Some("OnDelete"));
        let keep = match strategy.and_then(|strategy| strategy.rolling_update.as_ref()) {
            Some(rolling) => rolling.partition.unwrap_or(0),
            None if rolling => set.status.as_ref().and_then(|status| status.current_replicas).unwrap_or(0),
            None => 0,
        };
        let kept = ordinal < identity::ordinals(set).start.saturating_add(keep);
        let version = if kept { current } else { update };
        identity::new_pod(set, &version.template, &version.name, ordinal)
    }

    /// Returns the pods beyond the wanted ordinals, highest first.
    fn condemned(&self) -> Vec<Arc<Pod>> {
        let wanted = identity::ordinals(self.input.set);
        let ordinal = |pod: &Arc<Pod>| identity::ordinal(pod);
        let mut condemned: Vec<Arc<Pod>> = self.input.pods.to_vec();
        condemned.retain(|pod| ordinal(pod).is_some_and(|ordinal| !wanted.contains(&ordinal)));
        condemned.sort_by_key(|pod| std::cmp::Reverse(ordinal(pod)));
        condemned
    }

    fn first_unavailable(&self, condemned: &[Arc<Pod>]) -> Option<Arc<Pod>> {
        let replicas = self.replicas().into_iter().map(|replica| replica.pod);
        replicas.chain(condemned.iter().rev().cloned()).find(|pod| self.is_unavailable(pod))
    }

    fn is_unavailable(&self, pod: &Pod) -> bool {
        pods::is_terminating(pod) || !self.is_available(pod)
    }

    fn is_available(&self, pod: &Pod) -> bool {
        pods::is_available(pod, self.spec.min_ready_seconds, self.input.now)
    }

    fn is_healthy(&self, pod: &Pod) -> bool {
        pods::phase(pod) == "Running" && self.is_available(pod)
    }

    fn manage_replica(&mut self, replica: &Replica) -> Flow {
        let pod = &replica.pod;
        if pods::has_finished(pod) {
            if !pods::is_terminating(pod) {
                self.tasks.push(Task::Delete(Arc::clone(pod)));
            }
            return Flow::Break(());
        }
        if !replica.exists {
            self.create(pod);
            return Flow::Break(());
        }
        if pods::phase(pod) == "Pending" {
            if !self.create_claims(pod) {
                return Flow::Break(());
            }
            self.set_claim_owners(pod);
        }
        let healthy = self.is_healthy(pod) && !pods::is_terminating(pod);
        if self.ordered && !healthy {
            return Flow::Break(());
        }
        self.repair(pod);
        Flow::Continue(())
    }

    fn create(&mut self, pod: &Pod) {
        let stale = |(_, claim): &(String, PersistentVolumeClaim)| {
            let found = self.input.claims.get(&claim.name_any());
            found.is_some_and(|claim| claims::is_stale(claim, self.input.set, pod))
        };
        if self.claims_of(pod).iter().any(stale) || !self.create_claims(pod) {
            return;
        }
        self.tasks.push(Task::Create(Box::new(pod.clone())));
        self.set_claim_owners(pod);
    }

    /// Plans missing claims. Returns `false` if a claim is terminating: the pod cannot be created.
    fn create_claims(&mut self, pod: &Pod) -> bool {
        let mut leaving = Vec::new();
        for (_, claim) in self.claims_of(pod) {
            match self.input.claims.get(&claim.name_any()) {
                None => {
                    let task = Task::CreateClaim { claim: Box::new(claim), pod: pod.name_any() };
                    self.tasks.push(task);
                }
                Some(found) if found.metadata.deletion_timestamp.is_some() => leaving.push(found.name_any()),
                Some(_) => {}
            }
        }
        if leaving.is_empty() {
            return true;
        }
        let texts: Vec<String> = leaving.iter().map(|name| format!("pvc {name} is being deleted")).collect();
        let message = if let [one] = &texts[..] { one.clone() } else { format!("[{}]", texts.join(", ")) };
        self.tasks.push(Task::Fail { pod: pod.name_any(), message });
        false
    }

    fn claims_of(&self, pod: &Pod) -> Vec<(String, PersistentVolumeClaim)> {
        identity::ordinal(pod).map(|ordinal| identity::claims(self.input.set, ordinal)).unwrap_or_default()
    }

    /// Plans the owners that the retention policy asks for. Returns whether an owner has to change.
    fn set_claim_owners(&mut self, pod: &Pod) -> bool {
        let before = self.tasks.len();
        for (_, template) in self.claims_of(pod) {
            let Some(claim) = self.input.claims.get(&template.name_any()) else { continue };
            let Owners::Replace(owners) = claims::wanted(claim, self.input.set, pod) else { continue };
            let claim = Arc::clone(claim);
            let planned =
                |task: &Task| matches!(task, Task::SetClaimOwners { claim: other, .. } if *other == claim);
            if self.tasks.iter().any(planned) {
                continue;
            }
            if claims::has_other_controller(&claim, self.input.set, pod) {
                self.tasks.push(Task::ReportConflict { claim: claim.name_any() });
            }
            self.tasks.push(Task::SetClaimOwners { claim, owners, pod: pod.name_any() });
        }
        self.tasks.len() > before
    }

    fn repair(&mut self, pod: &Pod) {
        let owners_change = self.set_claim_owners(pod);
        match identity::repaired(self.input.set, pod) {
            Some(repaired) => {
                self.create_claims(pod);
                self.tasks.push(Task::Update(Box::new(repaired)));
            }
            None if owners_change => self.tasks.push(Task::Update(Box::new(pod.clone()))),
            None => {}
        }
    }

    fn scale_down(&mut self, pod: &Arc<Pod>, first_unhealthy: Option<&Pod>) -> Flow {
        if pods::is_terminating(pod) {
            return Flow::Break(());
        }
        let healthy = self.is_healthy(pod);
        let is_first = first_unhealthy.is_some_and(|first| first.metadata.name == pod.metadata.name);
        if self.ordered && !healthy && !is_first {
            return Flow::Break(());
        }
        self.tasks.push(Task::Delete(Arc::clone(pod)));
        Flow::Break(())
    }

    /// Plans the rolling update: deletes pods of an old revision.
    fn roll(&mut self, status: &mut StatefulSetStatus) {
        let strategy = self.spec.update_strategy.clone().unwrap_or_default();
        if strategy.type_.as_deref() == Some("OnDelete") {
            return;
        }
        let rolling = strategy.rolling_update.unwrap_or_default();
        let pods: Vec<Arc<Pod>> = self.replicas().into_iter().map(|replica| replica.pod).collect();
        let partition = usize::try_from(rolling.partition.unwrap_or(0)).unwrap_or(0);
        let to_update = pods.get(partition..).unwrap_or_default();
        let outdated = if self.input.counts_unavailable {
            let wanted = rolling.max_unavailable.unwrap_or(IntOrString::Int(1));
            let limit = percent::scaled(&wanted, self.spec.replicas.unwrap_or(1), false).max(1);
            let unavailable = pods.iter().filter(|pod| self.is_unavailable(pod)).count();
            self.outdated_within(to_update, usize::try_from(limit).unwrap_or(1).saturating_sub(unavailable))
        } else {
            self.highest_outdated(to_update).into_iter().collect()
        };
        for pod in outdated {
            self.tasks.push(Task::Delete(pod));
            status.current_replicas = status.current_replicas.and_then(|n| nonzero(n - 1));
        }
    }

    /// Returns the pods of an old revision to delete, highest first, if at most `budget` more pods may become unavailable. If pods are
    /// managed in parallel, unavailable pods of an old revision come first, and need no budget.
    fn outdated_within(&self, pods: &[Arc<Pod>], budget: usize) -> Vec<Arc<Pod>> {
        let outdated = pods.iter().rev().filter(|pod| self.is_outdated(pod)).cloned();
        if self.ordered {
            return outdated.take(budget).collect();
        }
        let (available, mut first): (Vec<_>, Vec<_>) = outdated.partition(|pod| self.is_healthy(pod));
        first.extend(available.into_iter().take(budget));
        first
    }

    /// Returns the highest pod of an old revision, if all higher pods are available.
    fn highest_outdated(&self, pods: &[Arc<Pod>]) -> Option<Arc<Pod>> {
        let mut highest = pods.iter().rev();
        highest
            .find(|pod| self.is_outdated(pod) || self.is_unavailable(pod))
            .filter(|pod| self.is_outdated(pod))
            .cloned()
    }

    /// Returns whether the pod has an old revision and is not terminating.
    fn is_outdated(&self, pod: &Pod) -> bool {
        let updated = pods::label(pod, POD_REVISION) == Some(self.input.update.name.as_str());
        !updated && !pods::is_terminating(pod)
    }

    /// Makes the new revision the current revision when all pods are ready and have the new revision.
    fn complete_rollout(&self, status: &mut StatefulSetStatus) {
        let strategy = self.spec.update_strategy.as_ref().and_then(|strategy| strategy.type_.as_deref());
        let replicas = self.spec.replicas.unwrap_or(1);
        let all = |count: Option<i32>| count.unwrap_or(0) == replicas;
        if strategy != Some("OnDelete")
            && all(status.updated_replicas)
            && all(status.ready_replicas)
            && status.replicas == replicas
        {
            status.current_replicas = status.updated_replicas;
            status.current_revision.clone_from(&status.update_revision);
        }
    }
}

/// Returns a number in the form of a status: absent if 0.
fn nonzero(number: i32) -> Option<i32> {
    (number != 0).then_some(number)
}

#[cfg(test)]
mod tests;
