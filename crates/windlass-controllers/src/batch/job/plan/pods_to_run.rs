//! The missing and the surplus pods of a Job.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::jiff::Timestamp;

use super::{BURST, Indexes, PodChanges, PodFailureAction, View, pod};
use crate::batch::job::back_off;
use crate::pods;

impl View<'_> {
    /// Plans the pods to create or to delete.
    pub(super) fn pods_to_run(&self) -> PodChanges {
        let active = self.active.len();
        if self.is_suspended() {
            return PodChanges { discard: self.surplus(active), ..PodChanges::default() };
        }
        let parallelism = self.spec.parallelism.unwrap_or(1);
        let wanted = match self.spec.completions {
            None if self.succeeded > 0 => active,
            None => usize::try_from(parallelism).unwrap_or(0),
            Some(completions) => {
                let left = completions.saturating_sub(self.succeeded);
                usize::try_from(left.min(parallelism)).unwrap_or(0)
            }
        };
        let mut discard = self.surplus(active.saturating_sub(wanted));
        if !discard.is_empty() {
            discard.truncate(BURST);
            return PodChanges { discard, ..PodChanges::default() };
        }
        let leaving = if pod::replaces_only_failed(self.job) { self.terminating().count() } else { 0 };
        let missing = wanted.saturating_sub(leaving).saturating_sub(active).min(BURST);
        if missing == 0 { PodChanges::default() } else { self.pods_to_create(missing) }
    }

    fn pods_to_create(&self, missing: usize) -> PodChanges {
        if self.spec.backoff_limit_per_index.is_none()
            && let Some(end) = self.back_off.ends(self.now)
        {
            return PodChanges { wake_at: Some(end), ..PodChanges::default() };
        }
        if !self.is_indexed() {
            let create = (0..missing).map(|_| pod::new(self.job, None, None)).collect();
            return PodChanges { create, ..PodChanges::default() };
        }
        let mut changes = PodChanges::default();
        for index in self.pending_indexes(missing) {
            match self.back_off_of(index).filter(|end| *end > self.now) {
                Some(end) => changes.wake_at = changes.wake_at.into_iter().chain([end]).min(),
                None => changes.create.push(pod::new(self.job, Some(index), self.failures_of(index))),
            }
        }
        changes
    }

    fn terminating(&self) -> impl Iterator<Item = &Pod> {
        let leaving = |found: &&Arc<Pod>| pods::is_terminating(found) && !pods::has_finished(found);
        self.pods.iter().filter(leaving).map(AsRef::as_ref)
    }

    /// Returns the lowest indexes that have neither ended nor a pod.
    fn pending_indexes(&self, count: usize) -> Vec<i32> {
        let mut taken = pod::indexes(self.active.iter().map(AsRef::as_ref));
        if pod::replaces_only_failed(self.job) {
            taken.extend(pod::indexes(self.terminating()));
        }
        let mut done = self.succeeded_indexes.with(&Indexes::of_each(taken));
        if let Some(failed) = &self.failed_indexes {
            done = done.with(failed);
        }
        done.missing(count, self.completions())
    }

    /// Returns the time at which the index may be tried again, if each index has a separate limit.
    fn back_off_of(&self, index: i32) -> Option<Timestamp> {
        let last = self.failed_last.get(&index)?;
        let (counted, ignored) = pod::earlier_failures(last);
        back_off::ends_after(counted.saturating_add(ignored).saturating_add(1), pod::finished_at(last))
    }

    /// Returns the failures of an index until now, if each index has a separate limit.
    fn failures_of(&self, index: i32) -> Option<(i32, i32)> {
        self.spec.backoff_limit_per_index?;
        let Some(last) = self.failed_last.get(&index) else { return Some((0, 0)) };
        let (counted, ignored) = pod::earlier_failures(last);
        Some(match self.match_policy(last) {
            PodFailureAction::Ignore => (counted, ignored.saturating_add(1)),
            _ => (counted.saturating_add(1), ignored),
        })
    }

    /// Returns the pods to remove: pods of a taken or unknown index, and further pods up to `at_least`.
    fn surplus(&self, at_least: usize) -> Vec<Arc<Pod>> {
        let mut left = self.active.clone();
        left.sort_by_cached_key(|pod| pods::deletion_rank(pod, 0));
        let mut surplus = Vec::new();
        if self.is_indexed() {
            // The last of several pods of an index, by rank, is kept.
            let mut seen = BTreeSet::new();
            let mut kept: Vec<Arc<Pod>> = Vec::new();
            for found in left.into_iter().rev() {
                match self.index(&found) {
                    Some(index) if seen.insert(index) => kept.push(found),
                    _ => surplus.push(found),
                }
            }
            kept.reverse();
            left = kept;
        }
        let more = at_least.saturating_sub(surplus.len());
        surplus.extend(left.into_iter().take(more));
        surplus
    }
}
