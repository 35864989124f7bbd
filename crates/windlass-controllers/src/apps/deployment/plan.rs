//! The next changes of a Deployment's ReplicaSets, and the next status.

use std::collections::BTreeMap;
use std::str::FromStr;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::annotations::{self, DESIRED, MAXIMUM, REVISION};
use super::conditions::{self, LATE, PAUSED, SET_NOT_CREATED};
use super::rolling::{self, Bounds, ReplicaCounts};
use super::scaling::{self, ActiveSet};

/// The label that distinguishes the pods of different templates.
pub(super) const HASH_LABEL: &str = "pod-template-hash";

/// A change to make.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// Create the ReplicaSet of the current template.
    Create { hash: String, replicas: i32, revision: u64 },
    /// Scale a ReplicaSet, and write the sizes of the Deployment into the annotations of the set. `from` may equal `to`.
    Scale { name: String, from: i32, to: i32 },
    /// Change the revision of a ReplicaSet: a rollback made the ReplicaSet current.
    SetRevision { name: String, revision: u64 },
    /// Write annotations and `minReadySeconds` of the Deployment into the new ReplicaSet.
    CopyFields { name: String, annotations: BTreeMap<String, String>, min_ready_seconds: i32 },
    /// Delete a ReplicaSet beyond `revisionHistoryLimit`.
    DeleteOld { name: String },
}

/// The changes to make, and the status to write.
#[derive(Debug)]
pub(super) struct Plan {
    pub tasks: Vec<Task>,
    pub status: DeploymentStatus,
    /// The revision of the current rollout, for the Deployment's annotation.
    pub revision: u64,
    /// The time at which a condition changes even without another change.
    pub wake_at: Option<Timestamp>,
}

/// Plans the next step of a Deployment that is not terminating.
pub(super) fn plan(deployment: &Deployment, sets: &[Arc<ReplicaSet>], now: Timestamp) -> Plan {
    let mut sets: Vec<&ReplicaSet> = sets.iter().map(AsRef::as_ref).collect();
    sets.sort_by_key(|set| {
        (set.metadata.creation_timestamp.as_ref().map(|time| time.0), set.metadata.name.clone())
    });
    let rollout = Rollout::new(deployment, &sets);
    let mut tasks = rollout.tasks();
    if rollout.is_complete() || rollout.is_paused() {
        tasks.extend(rollout.sets_to_delete());
    }
    let (status, wake_at) = rollout.status(now);
    Plan { tasks, status, revision: rollout.revision, wake_at }
}

/// Returns the replicas of a Deployment, and the largest number of pods that a rollout may have.
pub(super) fn sizes(deployment: &Deployment) -> (i32, i32) {
    let rollout = Rollout::new(deployment, &[]);
    (rollout.replicas, rollout.maximum())
}

struct Rollout<'a> {
    deployment: &'a Deployment,
    new: Option<&'a ReplicaSet>,
    old: Vec<&'a ReplicaSet>,
    /// The new ReplicaSet and the old ones, oldest first.
    sets: Vec<&'a ReplicaSet>,
    replicas: i32,
    bounds: Bounds,
    recreate: bool,
    revision: u64,
}

impl<'a> Rollout<'a> {
    fn new(deployment: &'a Deployment, sets: &[&'a ReplicaSet]) -> Self {
        let spec = deployment.spec.clone().unwrap_or_default();
        let replicas = spec.replicas.unwrap_or(1);
        let strategy = spec.strategy.unwrap_or_default();
        let rolling = strategy.rolling_update.unwrap_or_default();
        let new = sets.iter().copied().find(|set| has_template_of(set, deployment));
        let old: Vec<&ReplicaSet> =
            sets.iter().copied().filter(|set| !new.is_some_and(|new| std::ptr::eq(new, *set))).collect();
        let newest_old = old.iter().map(|set| revision_of(set)).max().unwrap_or(0);
        Self {
            deployment,
            replicas,
            bounds: Bounds::resolve(rolling.max_surge.as_ref(), rolling.max_unavailable.as_ref(), replicas),
            recreate: strategy.type_.as_deref() == Some("Recreate"),
            // A pause delays the next revision. 0 stands for none.
            revision: if spec.paused == Some(true) && new.is_none() {
                newest_old
            } else {
                new.map_or(0, revision_of).max(newest_old + 1)
            },
            new,
            old,
            sets: sets.to_vec(),
        }
    }

    fn tasks(&self) -> Vec<Task> {
        let mut tasks = Vec::new();
        if let Some(set) = self.new
            && revision_of(set) != self.revision
        {
            tasks.push(Task::SetRevision { name: name_of(set), revision: self.revision });
        }
        tasks.extend(self.new.and_then(|set| self.copy_fields(set)));
        // A pause stops the rollout, but not the scaling of existing ReplicaSets. A rollout goes on after the scaling.
        let scaling = if self.is_paused() || self.is_resized() { self.scale() } else { Vec::new() };
        if self.is_paused() || !scaling.is_empty() {
            tasks.extend(scaling);
        } else {
            tasks.extend(self.roll());
        }
        tasks
    }

    /// Returns the change of a new ReplicaSet whose annotations or `minReadySeconds` differ from the Deployment's.
    fn copy_fields(&self, set: &ReplicaSet) -> Option<Task> {
        let annotations = annotations::missing(self.deployment, set);
        let wanted = self.deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        let present = set.spec.as_ref().and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        let is_changed = wanted != present || !annotations.is_empty();
        is_changed.then(|| Task::CopyFields { name: name_of(set), annotations, min_ready_seconds: wanted })
    }

    /// Returns the next step from the old ReplicaSets to the new one.
    fn roll(&self) -> Vec<Task> {
        let old: Vec<ReplicaCounts> = self.old.iter().map(|set| count(set)).collect();
        let new = self.new.map(count).unwrap_or_default();
        let idle = old.iter().all(|set| set.wanted == 0) && self.old.iter().all(|set| has_no_pods(set));
        let size = match () {
            () if self.recreate && !idle => new.wanted.min(self.replicas),
            () if self.recreate => self.replicas,
            () => rolling::scale_up(new, &old, self.replicas, self.bounds),
        };
        let mut tasks = Vec::new();
        match self.new {
            None => {
                let hash = template_hash(self.deployment);
                tasks.push(Task::Create { hash, replicas: size, revision: self.revision });
            }
            Some(set) if size != new.wanted => tasks.push(scale(set, size)),
            Some(_) => {}
        }
        // Scale in one direction at a time: scaling up changes the counts that scaling down depends on.
        if self.recreate {
            tasks.extend(self.resize_old(&vec![0; old.len()]));
        } else if tasks.is_empty() {
            tasks.extend(self.resize_old(&rolling::scale_down(new, &old, self.replicas, self.bounds)));
        }
        tasks
    }

    /// Returns whether `spec.replicas` has changed since an active ReplicaSet was scaled.
    fn is_resized(&self) -> bool {
        self.active().any(|set| number::<i32>(set, DESIRED).is_some_and(|desired| desired != self.replicas))
    }

    /// Scales the ReplicaSets to `spec.replicas` without a step of the rollout. Several active sets keep their parts.
    fn scale(&self) -> Vec<Task> {
        let active: Vec<&ReplicaSet> = self.active().collect();
        match active[..] {
            [] => self.new.or(self.old.last().copied()).map_or_else(Vec::new, |set| self.scale_alone(set)),
            [set] => self.scale_alone(set),
            _ if self.is_saturated() => self.resize_old(&vec![0; self.old.len()]),
            _ if self.recreate => Vec::new(),
            _ => {
                let before = self.deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or(0);
                let maximum = |set| number(set, MAXIMUM).filter(|maximum| *maximum > 0).unwrap_or(before);
                let sets: Vec<ActiveSet> = active
                    .iter()
                    .map(|set| ActiveSet { wanted: count(set).wanted, maximum: maximum(set) })
                    .collect();
                let total = if self.replicas == 0 { 0 } else { self.maximum() };
                let sizes = scaling::proportional(&sets, total);
                let changes = active.iter().zip(sizes);
                changes
                    .filter(|(set, size)| self.differs(set, *size))
                    .map(|(set, size)| scale(set, size))
                    .collect()
            }
        }
    }

    /// Scales the only ReplicaSet that has pods.
    fn scale_alone(&self, set: &ReplicaSet) -> Vec<Task> {
        if count(set).wanted == self.replicas { Vec::new() } else { vec![scale(set, self.replicas)] }
    }

    /// Returns whether a ReplicaSet has another size, or annotations of another size of the Deployment.
    fn differs(&self, set: &ReplicaSet, size: i32) -> bool {
        count(set).wanted != size
            || number(set, DESIRED) != Some(self.replicas)
            || number(set, MAXIMUM) != Some(self.maximum())
    }

    /// Returns whether the new ReplicaSet has all pods of the Deployment, and all of them are available.
    fn is_saturated(&self) -> bool {
        self.new.is_some_and(|set| {
            let counts = count(set);
            counts.wanted == self.replicas
                && counts.available == self.replicas
                && number(set, DESIRED) == Some(self.replicas)
        })
    }

    /// Returns the ReplicaSets that have pods, oldest first.
    fn active(&self) -> impl Iterator<Item = &'a ReplicaSet> {
        self.sets.iter().copied().filter(|set| count(set).wanted > 0)
    }

    /// Returns the largest number of pods that a rollout may have.
    fn maximum(&self) -> i32 {
        let surge = if self.recreate { 0 } else { self.bounds.surge };
        self.replicas.saturating_add(surge)
    }

    fn is_paused(&self) -> bool {
        self.deployment.spec.as_ref().and_then(|spec| spec.paused) == Some(true)
    }

    fn resize_old(&self, sizes: &[i32]) -> Vec<Task> {
        let changes = self.old.iter().zip(sizes).filter(|(set, size)| count(set).wanted != **size);
        changes.map(|(set, size)| scale(set, *size)).collect()
    }

    fn is_complete(&self) -> bool {
        let totals = self.totals();
        self.new.is_some()
            && totals.updated == self.replicas
            && totals.replicas == self.replicas
            && totals.available == self.replicas
            && self.is_observed()
    }

    /// Returns whether the ReplicaSet controller has observed the current sizes.
    fn is_observed(&self) -> bool {
        self.old.iter().copied().chain(self.new).all(|set| {
            let seen = set.status.as_ref().and_then(|status| status.observed_generation).unwrap_or(0);
            seen >= set.metadata.generation.unwrap_or(0)
        })
    }

    fn sets_to_delete(&self) -> Vec<Task> {
        let limit = self.deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(10);
        let mut idle: Vec<&&ReplicaSet> = self
            .old
            .iter()
            .filter(|set| {
                count(set).wanted == 0 && running(set) == 0 && set.metadata.deletion_timestamp.is_none()
            })
            .collect();
        idle.sort_by_key(|set| revision_of(set));
        let surplus = idle.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        idle.iter().take(surplus).map(|set| Task::DeleteOld { name: name_of(set) }).collect()
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for set in self.old.iter().copied().chain(self.new) {
            let status = set.status.clone().unwrap_or_default();
            totals.wanted += count(set).wanted;
            totals.replicas += status.replicas;
            totals.ready += status.ready_replicas.unwrap_or(0);
            totals.available += status.available_replicas.unwrap_or(0);
        }
        totals.updated = self.new.map_or(0, running);
        totals
    }

    fn status(&self, now: Timestamp) -> (DeploymentStatus, Option<Timestamp>) {
        let totals = self.totals();
        let mut status = DeploymentStatus {
            observed_generation: self.deployment.metadata.generation,
            replicas: nonzero(totals.replicas),
            updated_replicas: nonzero(totals.updated),
            ready_replicas: nonzero(totals.ready),
            available_replicas: nonzero(totals.available),
            unavailable_replicas: nonzero(totals.wanted - totals.available),
            terminating_replicas: self.terminating(),
            ..self.deployment.status.clone().unwrap_or_default()
        };
        let before = self.deployment.status.clone().unwrap_or_default();
        let list = status.conditions.get_or_insert_default();
        let serves =
            totals.available >= self.replicas - if self.recreate { 0 } else { self.bounds.unavailable };
        let available = if serves {
            conditions::new(
                "Available",
                "True",
                "MinimumReplicasAvailable",
                "Deployment has minimum availability.".to_owned(),
            )
        } else {
            let message = "Deployment does not have minimum availability.".to_owned();
            conditions::new("Available", "False", "MinimumReplicasUnavailable", message)
        };
        conditions::set(list, DeploymentCondition { last_update_time: None, ..available }, &Time(now));
        let (progressing, wake_at) = self.progressing(&before, totals, now);
        conditions::set(list, progressing, &Time(now));
        if !self.is_paused() {
            conditions::set_or_remove(list, "ReplicaFailure", self.replica_failure());
        }
        for condition in list.iter_mut() {
            let same = before.conditions.iter().flatten().find(|old| {
                old.type_ == condition.type_
                    && old.status == condition.status
                    && old.reason == condition.reason
            });
            let kept = same.and_then(|old| old.last_update_time.clone());
            if condition.last_update_time.is_none() {
                condition.last_update_time = kept.or(Some(Time(now)));
            }
        }
        (status, wake_at)
    }

    /// Returns the condition of a ReplicaSet whose pods cannot be created or deleted: of the new ReplicaSet, or else of the oldest.
    fn replica_failure(&self) -> Option<DeploymentCondition> {
        let sets = self.new.into_iter().chain(self.sets.iter().copied());
        let conditions = sets.filter_map(|set| set.status.as_ref()?.conditions.as_ref()).flatten();
        let failure = conditions.into_iter().find(|condition| condition.type_ == "ReplicaFailure")?;
        Some(DeploymentCondition {
            type_: failure.type_.clone(),
            status: failure.status.clone(),
            reason: failure.reason.clone(),
            message: failure.message.clone(),
            last_transition_time: failure.last_transition_time.clone(),
            last_update_time: failure.last_transition_time.clone(),
        })
    }

    /// Returns the number of terminating pods of all ReplicaSets, or `None` if a ReplicaSet does not report
    /// the number.
    fn terminating(&self) -> Option<i32> {
        let statuses = self.new.iter().chain(&self.old).filter_map(|set| set.status.as_ref());
        let synced = statuses.filter(|status| status.observed_generation.is_some());
        synced.map(|status| status.terminating_replicas).sum()
    }

    fn progressing(
        &self,
        before: &DeploymentStatus,
        totals: Totals,
        now: Timestamp,
    ) -> (DeploymentCondition, Option<Timestamp>) {
        let set = self.new.map(name_of);
        let of_set = |text: &str| {
            set.as_ref().map_or_else(
                || "Deployment is progressing.".to_owned(),
                |set| format!("ReplicaSet \"{set}\" {text}"),
            )
        };
        let old = before.conditions.iter().flatten().find(|condition| condition.type_ == "Progressing");
        let was = |reason| old.is_some_and(|old| old.reason.as_deref() == Some(reason));
        if self.is_paused() {
            let paused = conditions::new("Progressing", "Unknown", PAUSED, "Deployment is paused".to_owned());
            // A rollout that is late stays late.
            return (old.filter(|_| was(LATE)).cloned().unwrap_or(paused), None);
        }
        let reached = was("NewReplicaSetAvailable");
        if reached && totals.replicas == totals.updated {
            // The rollout is complete. Neither another size nor the replacement of a pod starts a rollout.
            return (old.cloned().unwrap_or_default(), None);
        }
        if self.is_complete() {
            let done = conditions::new(
                "Progressing",
                "True",
                "NewReplicaSetAvailable",
                of_set("has successfully progressed."),
            );
            return (done, None);
        }
        let moved = old.is_none()
            || was(PAUSED)
            || was(SET_NOT_CREATED)
            || before.updated_replicas.unwrap_or(0) != totals.updated
            || before.ready_replicas.unwrap_or(0) != totals.ready
            || before.available_replicas.unwrap_or(0) != totals.available
            || reached && totals.updated < self.replicas;
        if reached && !moved {
            // The rollout is complete. A later replacement of a pod does not start a new rollout.
            return (old.cloned().unwrap_or_default(), None);
        }
        let mut next = conditions::new("Progressing", "True", "ReplicaSetUpdated", of_set("is progressing."));
        let deadline =
            self.deployment.spec.as_ref().and_then(|spec| spec.progress_deadline_seconds).unwrap_or(600);
        let since = match old.and_then(|old| old.last_update_time.as_ref()) {
            Some(time) if !moved => time.0,
            _ => now,
        };
        let due = since.checked_add(SignedDuration::from_secs(deadline.into())).unwrap_or(Timestamp::MAX);
        if due <= now {
            let late = conditions::new("Progressing", "False", LATE, of_set("has timed out progressing."));
            return (late, None);
        }
        next.last_update_time = Some(Time(since));
        (next, Some(due))
    }
}

#[derive(Clone, Copy, Default)]
struct Totals {
    wanted: i32,
    replicas: i32,
    updated: i32,
    ready: i32,
    available: i32,
}

/// Returns a number in the form of a status: absent if 0.
fn nonzero(number: i32) -> Option<i32> {
    (number > 0).then_some(number)
}

fn scale(set: &ReplicaSet, to: i32) -> Task {
    Task::Scale { name: name_of(set), from: count(set).wanted, to }
}

fn name_of(set: &ReplicaSet) -> String {
    set.metadata.name.clone().unwrap_or_default()
}

fn count(set: &ReplicaSet) -> ReplicaCounts {
    ReplicaCounts {
        wanted: set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1),
        available: set.status.as_ref().and_then(|status| status.available_replicas).unwrap_or(0),
    }
}

fn running(set: &ReplicaSet) -> i32 {
    set.status.as_ref().map_or(0, |status| status.replicas)
}

/// Returns whether the status of a ReplicaSet is not stale, and shows no pod, not even a terminating pod.
fn has_no_pods(set: &ReplicaSet) -> bool {
    let status = set.status.clone().unwrap_or_default();
    status.replicas == 0
        && status.terminating_replicas.unwrap_or(0) == 0
        && status.observed_generation.unwrap_or(0) >= set.metadata.generation.unwrap_or(0)
}

fn revision_of(set: &ReplicaSet) -> u64 {
    number(set, REVISION).unwrap_or(0)
}

/// Returns the number in an annotation.
fn number<N: FromStr>(set: &ReplicaSet, annotation: &str) -> Option<N> {
    set.metadata.annotations.as_ref()?.get(annotation)?.parse().ok()
}

/// Returns whether a ReplicaSet has the template of the Deployment, apart from the hash label.
pub(super) fn has_template_of(set: &ReplicaSet, deployment: &Deployment) -> bool {
    let of_set = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    let of_deployment = deployment.spec.as_ref().map(|spec| &spec.template);
    without_hash_label(of_set) == without_hash_label(of_deployment)
}

/// Returns a template without the hash label. Equal templates belong to the same rollout.
fn without_hash_label(template: Option<&PodTemplateSpec>) -> PodTemplateSpec {
    let mut template = template.cloned().unwrap_or_default();
    if let Some(metadata) = &mut template.metadata {
        let labels: Option<BTreeMap<String, String>> = metadata.labels.take();
        let mut labels = labels.unwrap_or_default();
        labels.remove(HASH_LABEL);
        metadata.labels = (!labels.is_empty()).then_some(labels);
        metadata.creation_timestamp = None;
    }
    template
}

/// Returns a short hash of the template, without vowels. The hash changes with each name collision.
fn template_hash(deployment: &Deployment) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let spec = deployment.spec.clone().unwrap_or_default();
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
    let text = serde_json::to_string(&spec.template).unwrap_or_default();
    let mut state = 0xcbf2_9ce4_8422_2325_u64;
    for byte in text.bytes().chain(collisions.to_le_bytes()) {
        state = (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut name = String::new();
    for _ in 0..10 {
        name.push(char::from(LETTERS[(state % 27) as usize]));
        state /= 27;
    }
    name
}

#[cfg(test)]
mod tests;
