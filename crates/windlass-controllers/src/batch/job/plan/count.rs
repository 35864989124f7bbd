//! Counts finished pods, and ends the Job when all are counted.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use k8s_openapi::api::core::v1::Pod;
use windlass_runtime::events::EventType;

use super::{Indexes, JobEvent, PodFailureAction, View, conditions, lists, pod};
use crate::pods;

/// The largest number of uids in `status.uncountedTerminatedPods`, as in Kubernetes.
const MAX_UNCOUNTED: usize = 500;

pub(super) struct Counter<'a> {
    view: &'a View<'a>,
    status: JobStatus,
    outcome: Option<JobCondition>,
    terminating: i32,
    release: Vec<Arc<Pod>>,
    new_indexes: BTreeSet<i32>,
    /// There are more pods than fit into the status.
    overflows: bool,
}

/// The statuses before and after finalizers are removed.
pub(super) struct Counted {
    pub before: JobStatus,
    pub release: Vec<Arc<Pod>>,
    pub after: JobStatus,
    pub end: Vec<JobEvent>,
}

impl<'a> Counter<'a> {
    pub(super) fn new(
        view: &'a View<'a>,
        status: JobStatus,
        outcome: Option<JobCondition>,
        terminating: i32,
    ) -> Self {
        let (release, new_indexes) = (Vec::new(), BTreeSet::new());
        Self { view, status, outcome, terminating, release, new_indexes, overflows: false }
    }

    pub(super) fn count(mut self) -> Counted {
        let tracked = self.view.pods.iter().filter(|found| pod::is_tracked(found));
        let mut with_finalizer: BTreeSet<String> =
            tracked.filter_map(|found| found.metadata.uid.clone()).collect();
        settle(&mut self.status, &with_finalizer);
        self.take_up();
        self.write_indexes();
        self.write_target();
        let before = self.status.clone();
        for found in &self.release {
            with_finalizer.remove(found.metadata.uid.as_deref().unwrap_or_default());
        }
        settle(&mut self.status, &with_finalizer);
        let end = self.finish();
        Counted { before, release: self.release, after: self.status, end }
    }

    /// Takes finished pods up into the status.
    fn take_up(&mut self) {
        let mut order: Vec<Arc<Pod>> = self.view.pods.to_vec();
        if self.view.is_indexed() {
            order.sort_by_key(|found| pod::index(found));
        }
        for found in order.into_iter().filter(|found| pod::is_tracked(found)) {
            if self.can_release(&found) {
                self.take_up_one(&found);
                self.release.push(found);
            }
            let uncounted = self.status.uncounted_terminated_pods.get_or_insert_default();
            let known: usize = lists(uncounted).iter().map(|list| list.as_ref().map_or(0, Vec::len)).sum();
            if known + self.new_indexes.len() >= MAX_UNCOUNTED {
                self.overflows = true;
                break;
            }
        }
    }

    fn can_release(&self, found: &Pod) -> bool {
        let ends = self.view.job.metadata.deletion_timestamp.is_some() || self.outcome.is_some();
        if ends || pods::phase(found) == "Succeeded" {
            return true;
        }
        // The last failed pod of an index stays until the next pod exists, because the failed pod holds the
        // number of failures.
        let is_last = || {
            let last = self.view.index(found).and_then(|index| self.view.failed_last.get(&index));
            last.is_some_and(|last| last.metadata.uid == found.metadata.uid)
        };
        pod::is_failed(found, self.view.job) && !is_last()
    }

    fn take_up_one(&mut self, found: &Pod) {
        let uid = found.metadata.uid.clone().unwrap_or_default();
        let index = self.view.index(found);
        let (indexed, known) = (self.view.is_indexed(), self.known_indexes());
        let uncounted = self.status.uncounted_terminated_pods.get_or_insert_default();
        let [succeeded, failed] = lists(uncounted);
        let is_in = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| list.contains(&uid));
        let succeeds = self.outcome.as_ref().is_some_and(|outcome| outcome.type_ == "SuccessCriteriaMet");
        if pods::phase(found) == "Succeeded" && !is_in(failed) {
            match index {
                Some(index) if indexed => {
                    if !known.contains(index) {
                        self.new_indexes.insert(index);
                    }
                }
                None if indexed => {}
                _ if is_in(succeeded) => {}
                _ => succeeded.get_or_insert_default().push(uid),
            }
        } else if (pod::is_failed(found, self.view.job) || self.outcome.is_some() && !succeeds)
            && !is_in(failed)
            && (!indexed || index.is_some())
            && self.view.match_policy(found) != PodFailureAction::Ignore
        {
            failed.get_or_insert_default().push(uid);
        }
    }

    fn known_indexes(&self) -> Indexes {
        let text = self.status.completed_indexes.as_deref().unwrap_or_default();
        Indexes::parse(text, self.view.completions())
    }

    fn write_indexes(&mut self) {
        if !self.view.is_indexed() {
            return;
        }
        let completed = self.known_indexes().with(&Indexes::of_each(self.new_indexes.iter().copied()));
        self.status.succeeded = Some(completed.count()).filter(|count| *count > 0);
        self.status.completed_indexes = Some(completed.to_string()).filter(|text| !text.is_empty());
        self.status.failed_indexes = self.view.failed_indexes.as_ref().map(Indexes::to_string);
    }

    /// Writes the condition that announces the end, and prepares the final condition.
    fn write_target(&mut self) {
        let Some(outcome) = self.outcome.take() else { return };
        let list = self.status.conditions.get_or_insert_default();
        let last = match outcome.type_.as_str() {
            "FailureTarget" => "Failed",
            "SuccessCriteriaMet" => "Complete",
            _ => {
                self.outcome = Some(outcome);
                return;
            }
        };
        if conditions::holding(list, &outcome.type_).is_none() {
            list.push(outcome.clone());
        }
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let (reason, message) = (text(&outcome.reason), text(&outcome.message));
        self.outcome = Some(conditions::new(last, &reason, &message, self.view.now));
    }

    /// Writes the final condition when every pod is counted and no pod is terminating. Returns the Events.
    fn finish(&mut self) -> Vec<JobEvent> {
        let uncounted = self.status.uncounted_terminated_pods.get_or_insert_default();
        let waits = lists(uncounted).iter().any(|list| list.as_ref().is_some_and(|list| !list.is_empty()));
        let Some(last) = self.outcome.take().filter(|_| !waits && !self.overflows && self.terminating == 0)
        else {
            return Vec::new();
        };
        conditions::ensure(self.status.conditions.get_or_insert_default(), last.clone());
        if last.type_ != "Complete" {
            let (reason, message) = (last.reason.unwrap_or_default(), last.message.unwrap_or_default());
            return vec![JobEvent { kind: EventType::Warning, reason, message }];
        }
        self.status.completion_time = last.last_transition_time;
        let mut events = Vec::new();
        let too_many = self.view.spec.completions.is_some_and(|wanted| self.status.succeeded > Some(wanted));
        if too_many {
            events.push(JobEvent {
                kind: EventType::Warning,
                reason: "TooManySucceededPods".to_owned(),
                message: "Too many succeeded pods running after completion count reached".to_owned(),
            });
        }
        let (reason, message) = ("Completed".to_owned(), "Job completed".to_owned());
        events.push(JobEvent { kind: EventType::Normal, reason, message });
        events
    }
}

/// Moves uncounted pods without a finalizer into the counters.
fn settle(status: &mut JobStatus, with_finalizer: &BTreeSet<String>) {
    let mut gone = [0, 0];
    let uncounted = status.uncounted_terminated_pods.get_or_insert_default();
    for (list, gone) in lists(uncounted).into_iter().zip(&mut gone) {
        let Some(uids) = list else { continue };
        let before = uids.len();
        uids.retain(|uid| with_finalizer.contains(uid));
        *gone = i32::try_from(before - uids.len()).unwrap_or(i32::MAX);
        if uids.is_empty() {
            *list = None;
        }
    }
    for (counter, gone) in [(&mut status.succeeded, gone[0]), (&mut status.failed, gone[1])] {
        if gone > 0 {
            *counter = Some(counter.unwrap_or(0).saturating_add(gone));
        }
    }
}
