//! The next changes of a Job's pods, and the next status.
//!
//! Finished pods are counted in three steps: the uids are written into `status.uncountedTerminatedPods`, then
//! the finalizers are removed, and then the pods move into the counters. No pod is therefore lost or counted
//! twice.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use windlass_runtime::events::EventType;

use self::count::Counter;
use super::back_off::BackOff;
use super::conditions;
use super::failure_policy::{PodFailureAction, match_policy};
use super::indexes::Indexes;
use super::{pod, success_policy};
use crate::pods;

mod count;
mod pods_to_run;

/// The largest number of pods that a reconcile creates or deletes, as in Kubernetes.
const BURST: usize = 500;

/// An Event to record about the Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobEvent {
    pub kind: EventType,
    pub reason: String,
    pub message: String,
}

/// The changes to make, in this order.
#[derive(Debug)]
pub(super) struct Plan {
    /// Pods to release and delete without counting the pods as failed.
    pub discard: Vec<Arc<Pod>>,
    /// Pods to delete because the Job has ended.
    pub kill: Vec<Arc<Pod>>,
    pub create: Vec<Pod>,
    /// Events about decisions before the write of the status.
    pub events: Vec<JobEvent>,
    /// The status to write before finalizers are removed.
    pub before: JobStatus,
    /// The pods to release from the finalizer.
    pub release: Vec<Arc<Pod>>,
    /// The status to write after.
    pub after: JobStatus,
    /// Events about the end of the Job, once that is written.
    pub end: Vec<JobEvent>,
    pub back_off: BackOff,
    pub wake_at: Option<Timestamp>,
}

/// The known facts about a Job and the Job's pods in a reconcile.
struct View<'a> {
    job: &'a Job,
    spec: JobSpec,
    pods: &'a [Arc<Pod>],
    active: Vec<Arc<Pod>>,
    now: Timestamp,
    back_off: BackOff,
    succeeded: i32,
    failed: i32,
    /// The indexes that have succeeded and failed, of an indexed Job.
    succeeded_indexes: Indexes,
    failed_indexes: Option<Indexes>,
    /// The last failed pod of each index that is to be tried again.
    failed_last: BTreeMap<i32, Arc<Pod>>,
}

/// The changes of pods that a reconcile makes.
#[derive(Default)]
struct PodChanges {
    discard: Vec<Arc<Pod>>,
    kill: Vec<Arc<Pod>>,
    create: Vec<Pod>,
    wake_at: Option<Timestamp>,
}

/// Plans the next step of a Job that has not finished.
pub(super) fn plan(job: &Job, pods: &[Arc<Pod>], back_off: BackOff, now: Timestamp) -> Plan {
    let view = View::new(job, pods, back_off, now);
    let mut status = job.status.clone().unwrap_or_default();
    status.uncounted_terminated_pods.get_or_insert_default();
    if status.start_time.is_none() && !view.is_suspended() {
        status.start_time = Some(Time(now));
    }
    let mut wake_at = view.deadline(&status).filter(|due| *due > now);
    let mut outcome = view.outcome(&status);
    let changes = match &outcome {
        Some(_) => PodChanges { kill: view.active.clone(), ..PodChanges::default() },
        None if job.metadata.deletion_timestamp.is_some() => PodChanges::default(),
        None => view.pods_to_run(),
    };
    wake_at = wake_at.into_iter().chain(changes.wake_at).min();
    let terminating = view.count_changes(&changes, &mut status);
    let mut events = Vec::new();
    if outcome.is_none() && view.is_complete(status.active.unwrap_or(0)) {
        let message = "Reached expected number of succeeded pods";
        outcome = Some(conditions::new("SuccessCriteriaMet", "CompletionsReached", message, now));
    } else if outcome.is_none() && job.metadata.deletion_timestamp.is_none() {
        events.extend(view.suspend_or_resume(&mut status));
    }
    let PodChanges { discard, kill, create, .. } = changes;
    let counted = Counter::new(&view, status, outcome, terminating).count();
    Plan {
        discard,
        kill,
        create,
        events,
        before: counted.before,
        release: counted.release,
        after: counted.after,
        end: counted.end,
        back_off: view.back_off,
        wake_at,
    }
}

impl<'a> View<'a> {
    fn new(job: &'a Job, pods: &'a [Arc<Pod>], back_off: BackOff, now: Timestamp) -> Self {
        let status = job.status.clone().unwrap_or_default();
        let uncounted = status.uncounted_terminated_pods.clone().unwrap_or_default();
        let mut view = Self {
            job,
            spec: job.spec.clone().unwrap_or_default(),
            pods,
            active: pods.iter().filter(|pod| pods::is_active(pod)).cloned().collect(),
            now,
            back_off,
            succeeded: 0,
            failed: 0,
            succeeded_indexes: Indexes::default(),
            failed_indexes: None,
            failed_last: BTreeMap::new(),
        };
        let succeeded = view.uncounted(&uncounted, |pod| pods::phase(pod) == "Succeeded");
        let failed = view.uncounted(&uncounted, |found| pod::is_failed(found, job));
        view.back_off = back_off.after(&succeeded, &failed);
        let counts = failed.iter().filter(|pod| view.match_policy(pod) != PodFailureAction::Ignore).count();
        view.succeeded = sum(status.succeeded, succeeded.len(), uncounted.succeeded.as_deref());
        view.failed = sum(status.failed, counts, uncounted.failed.as_deref());
        if view.is_indexed() {
            view.read_indexes(&status);
        }
        view
    }

    fn read_indexes(&mut self, status: &JobStatus) {
        let completions = self.completions();
        let known = Indexes::parse(status.completed_indexes.as_deref().unwrap_or_default(), completions);
        let tracked: Vec<&Arc<Pod>> = self.pods.iter().filter(|found| pod::is_tracked(found)).collect();
        // A pod that was deleted counts as failed, even if the pod succeeds afterwards.
        let failed = status.uncounted_terminated_pods.as_ref().and_then(|pods| pods.failed.as_ref());
        let succeeded =
            tracked.iter().filter(|found| pods::phase(found) == "Succeeded" && !is_listed(found, failed));
        let succeeded = Indexes::of_each(succeeded.filter_map(|found| self.index(found)));
        self.succeeded_indexes = known.with(&succeeded);
        self.succeeded = self.succeeded_indexes.count();
        if let Some(limit) = self.spec.backoff_limit_per_index {
            let known = Indexes::parse(status.failed_indexes.as_deref().unwrap_or_default(), completions);
            let failed = tracked.iter().filter(|found| self.fails_its_index(found, limit));
            let failed = Indexes::of_each(failed.filter_map(|found| self.index(found)));
            self.failed_indexes = Some(known.with(&failed));
            self.failed_last = self.last_failures();
        }
    }

    fn is_indexed(&self) -> bool {
        self.spec.completion_mode.as_deref() == Some("Indexed")
    }

    fn is_suspended(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    fn completions(&self) -> i32 {
        self.spec.completions.unwrap_or(1)
    }

    fn match_policy(&self, found: &Pod) -> PodFailureAction {
        match_policy(self.spec.pod_failure_policy.as_ref(), found)
    }

    /// Returns the index of a pod, if the Job has that index.
    fn index(&self, found: &Pod) -> Option<i32> {
        pod::index(found).filter(|index| *index < self.completions())
    }

    /// Returns the pods that satisfy a condition and that the status has not taken up yet.
    fn uncounted(&self, known: &UncountedTerminatedPods, holds: impl Fn(&Pod) -> bool) -> Vec<Arc<Pod>> {
        let is_known = |found: &Pod| {
            is_listed(found, known.succeeded.as_ref()) || is_listed(found, known.failed.as_ref())
        };
        let valid = |found: &&Arc<Pod>| {
            pod::is_tracked(found) && !is_known(found) && (!self.is_indexed() || self.index(found).is_some())
        };
        self.pods.iter().filter(valid).filter(|found| holds(found)).cloned().collect()
    }

    fn fails_its_index(&self, found: &Pod, limit: i32) -> bool {
        pod::is_failed(found, self.job)
            && match self.match_policy(found) {
                PodFailureAction::FailIndex => true,
                PodFailureAction::Ignore => false,
                PodFailureAction::Count | PodFailureAction::FailJob(_) => {
                    pod::earlier_failures(found).0 >= limit
                }
            }
    }

    /// Returns the last failed pod of each index that is neither done nor running again.
    fn last_failures(&self) -> BTreeMap<i32, Arc<Pod>> {
        let active = pod::indexes(self.active.iter().map(AsRef::as_ref));
        let mut last: BTreeMap<i32, Arc<Pod>> = BTreeMap::new();
        let rank = |found: &Pod| {
            let (counted, ignored) = pod::earlier_failures(found);
            (counted.saturating_add(ignored), pod::finished_at(found))
        };
        for found in
            self.pods.iter().filter(|found| pod::is_tracked(found) && pod::is_failed(found, self.job))
        {
            let Some(index) = self.index(found) else { continue };
            let failed = self.failed_indexes.as_ref().is_some_and(|failed| failed.contains(index));
            if failed || self.succeeded_indexes.contains(index) || active.contains(&index) {
                continue;
            }
            let newer = last.get(&index).is_none_or(|other| rank(found) >= rank(other));
            if newer {
                last.insert(index, Arc::clone(found));
            }
        }
        last
    }

    /// Returns when `activeDeadlineSeconds` ends.
    fn deadline(&self, status: &JobStatus) -> Option<Timestamp> {
        let limit = SignedDuration::from_secs(self.spec.active_deadline_seconds?);
        let start = status.start_time.as_ref().filter(|_| !self.is_suspended())?;
        start.0.checked_add(limit).ok()
    }

    /// Returns the condition with which the Job is ending, if the Job is ending.
    fn outcome(&self, status: &JobStatus) -> Option<JobCondition> {
        let conditions = status.conditions.as_deref().unwrap_or_default();
        if let Some(met) = conditions::holding(conditions, "SuccessCriteriaMet") {
            return Some(met.clone());
        }
        if let Some(target) = conditions::holding(conditions, "FailureTarget") {
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            return Some(conditions::new("Failed", &text(&target.reason), &text(&target.message), self.now));
        }
        let fail =
            |reason: &str, message: &str| Some(conditions::new("FailureTarget", reason, message, self.now));
        let failed = self.pods.iter().filter(|found| pod::is_failed(found, self.job));
        let fatal = failed.map(|found| self.match_policy(found)).find_map(|action| match action {
            PodFailureAction::FailJob(message) => Some(message),
            _ => None,
        });
        if let Some(message) = fatal {
            return fail("PodFailurePolicy", &message);
        }
        if self.failed > self.spec.backoff_limit.unwrap_or(6) || self.restarts_exceed_limit() {
            return fail("BackoffLimitExceeded", "Job has reached the specified backoff limit");
        }
        if self.deadline(status).is_some_and(|due| due <= self.now) {
            return fail("DeadlineExceeded", "Job was active longer than specified deadline");
        }
        self.outcome_of_indexes().or_else(|| {
            let policy = self.spec.success_policy.as_ref().filter(|_| self.is_indexed());
            let message = success_policy::met(policy, self.completions(), &self.succeeded_indexes)?;
            Some(conditions::new("SuccessCriteriaMet", "SuccessPolicy", &message, self.now))
        })
    }

    fn outcome_of_indexes(&self) -> Option<JobCondition> {
        let failed = self.failed_indexes.as_ref()?.count();
        if self.spec.max_failed_indexes.is_some_and(|limit| failed > limit) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(conditions::new("FailureTarget", "MaxFailedIndexesExceeded", message, self.now));
        }
        let all = failed.saturating_add(self.succeeded_indexes.count()) >= self.completions();
        (failed > 0 && all)
            .then(|| conditions::new("FailureTarget", "FailedIndexes", "Job has failed indexes", self.now))
    }

    /// Returns whether containers that restart in place have failed too often.
    fn restarts_exceed_limit(&self) -> bool {
        let template = self.spec.template.spec.as_ref();
        if template.and_then(|spec| spec.restart_policy.as_deref()) != Some("OnFailure") {
            return false;
        }
        let running = self.pods.iter().filter(|pod| matches!(pods::phase(pod), "Running" | "Pending"));
        let statuses = running.filter_map(|pod| pod.status.as_ref()).flat_map(|status| {
            status.init_container_statuses.iter().chain(&status.container_statuses).flatten()
        });
        let restarts: i32 = statuses.map(|status| status.restart_count).sum();
        match self.spec.backoff_limit.unwrap_or(6) {
            0 => restarts > 0,
            limit => restarts >= limit,
        }
    }

    /// Returns whether enough pods have succeeded and none is active.
    fn is_complete(&self, active: i32) -> bool {
        active == 0 && self.spec.completions.map_or(self.succeeded > 0, |wanted| self.succeeded >= wanted)
    }

    /// Writes the numbers of pods after the changes. Returns how many pods are terminating then.
    fn count_changes(&self, changes: &PodChanges, status: &mut JobStatus) -> i32 {
        let number = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
        let removed: Vec<&Arc<Pod>> = changes.discard.iter().chain(&changes.kill).collect();
        let ready = self.active.iter().filter(|pod| pods::is_ready(pod)).count();
        let removed_ready = removed.iter().filter(|pod| pods::is_ready(pod)).count();
        let leaving = self.pods.iter().filter(|pod| pods::is_terminating(pod) && !pods::has_finished(pod));
        let terminating = number(leaving.count() + removed.len());
        let active = number(self.active.len() + changes.create.len() - removed.len());
        status.active = (active > 0).then_some(active);
        status.ready = Some(number(ready - removed_ready));
        status.terminating = Some(terminating);
        terminating
    }

    /// Updates the condition `Suspended` and the start time.
    fn suspend_or_resume(&self, status: &mut JobStatus) -> Option<JobEvent> {
        let suspended = self.is_suspended();
        let (reason, message) =
            if suspended { ("JobSuspended", "Job suspended") } else { ("JobResumed", "Job resumed") };
        let mut condition = conditions::new("Suspended", reason, message, self.now);
        if !suspended {
            "False".clone_into(&mut condition.status);
        }
        let list = status.conditions.get_or_insert_default();
        let changed = conditions::ensure(list, condition);
        if list.is_empty() {
            status.conditions = None;
        }
        if changed {
            status.start_time = (!suspended).then_some(Time(self.now));
        }
        changed.then(|| JobEvent {
            kind: EventType::Normal,
            reason: if suspended { "Suspended" } else { "Resumed" }.to_owned(),
            message: message.to_owned(),
        })
    }
}

/// Returns whether a list of uids has the pod.
fn is_listed(found: &Pod, uids: Option<&Vec<String>>) -> bool {
    uids.zip(found.metadata.uid.as_ref()).is_some_and(|(uids, uid)| uids.contains(uid))
}

fn sum(counted: Option<i32>, new: usize, uncounted: Option<&[String]>) -> i32 {
    let more = new + uncounted.map_or(0, <[String]>::len);
    counted.unwrap_or(0).saturating_add(i32::try_from(more).unwrap_or(i32::MAX))
}

/// Returns the two lists of uncounted pods. A missing list becomes empty.
fn lists(uncounted: &mut UncountedTerminatedPods) -> [&mut Option<Vec<String>>; 2] {
    [&mut uncounted.succeeded, &mut uncounted.failed]
}

#[cfg(test)]
mod tests;
