//! The Jobs to create and delete for a CronJob, and the next status.

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::tz::TimeZone;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube_core::{ObjectMeta, ResourceExt};

use super::schedule::{Schedule, time_zone};
use crate::adoption;
use crate::batch::job::{FinishedAs, finished};

const SCHEDULED_AT: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// The delay after a scheduled time until the schedule is checked again.
const DELTA: SignedDuration = SignedDuration::from_millis(100);
/// The number of missed times above which a warning is recorded.
const MANY_MISSED: i64 = 100;

/// An Event to record about the CronJob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CronEvent {
    pub warning: bool,
    pub reason: &'static str,
    pub message: String,
}

/// The changes to make, in this order.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Jobs to delete: beyond the history limits, or replaced.
    pub delete: Vec<Arc<Job>>,
    pub create: Option<Job>,
    /// The status before the new Job is added.
    pub status: CronJobStatus,
    /// The time of the schedule that the new Job is for.
    pub scheduled: Option<Timestamp>,
    pub events: Vec<CronEvent>,
    pub wake_at: Option<Timestamp>,
}

/// Plans the next step. `jobs` are all Jobs of the namespace.
pub(super) fn plan(cron_job: &CronJob, jobs: &[Arc<Job>], now: Timestamp) -> Plan {
    let name = cron_job.name_any();
    let is_child = |job: &&Arc<Job>| adoption::controller_of(&***job).is_some_and(|owner| owner.name == name);
    let children: Vec<Arc<Job>> = jobs.iter().filter(is_child).cloned().collect();
    let plan = Plan { status: cron_job.status.clone().unwrap_or_default(), ..Plan::default() };
    let spec = cron_job.spec.clone();
    let mut planner = Planner { cron_job, spec, now, plan };
    planner.clean_up(&children);
    planner.observe(&children, jobs);
    if cron_job.metadata.deletion_timestamp.is_none() {
        planner.schedule(jobs);
    }
    if planner.plan.status.active.as_ref().is_some_and(Vec::is_empty) {
        planner.plan.status.active = None;
    }
    planner.plan
}

struct Planner<'a> {
    cron_job: &'a CronJob,
    spec: CronJobSpec,
    now: Timestamp,
    plan: Plan,
}

/// The times of a schedule since the last check.
struct Missed {
    /// Where the search began.
    since: Timestamp,
    latest: Option<Timestamp>,
    any: bool,
    many: bool,
}

impl Planner<'_> {
    fn event(&mut self, warning: bool, reason: &'static str, message: String) {
        self.plan.events.push(CronEvent { warning, reason, message });
    }

    /// Deletes the oldest finished Jobs beyond the history limits.
    fn clean_up(&mut self, children: &[Arc<Job>]) {
        let limits = [
            (FinishedAs::Complete, self.spec.successful_jobs_history_limit),
            (FinishedAs::Failed, self.spec.failed_jobs_history_limit),
        ];
        for (how, limit) in limits {
            let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { continue };
            let ended = |job: &&Arc<Job>| finished(job).is_some_and(|(ended, _)| ended == how);
            let mut ended: Vec<Arc<Job>> = children.iter().filter(ended).cloned().collect();
            ended.sort_by_cached_key(|job| {
                let start =
                    job.status.as_ref().and_then(|status| status.start_time.as_ref()).map(|time| time.0);
                (start.is_none(), start, job.metadata.name.clone())
            });
            ended.truncate(ended.len().saturating_sub(limit));
            for job in ended {
                self.delete(job);
            }
        }
    }

    fn delete(&mut self, job: Arc<Job>) {
        self.forget(job.metadata.uid.as_deref().unwrap_or_default());
        self.plan.delete.push(job);
    }

    fn forget(&mut self, uid: &str) {
        let active = self.plan.status.active.get_or_insert_default();
        active.retain(|job| job.uid.as_deref() != Some(uid));
    }

    fn is_active(&self, uid: &str) -> bool {
        self.plan.status.active.iter().flatten().any(|job| job.uid.as_deref() == Some(uid))
    }

    /// Brings the list of active Jobs up to date.
    fn observe(&mut self, children: &[Arc<Job>], jobs: &[Arc<Job>]) {
        for job in children {
            let (name, uid) = (job.name_any(), job.metadata.uid.clone().unwrap_or_default());
            let Some((how, _)) = finished(job) else {
                if !self.is_active(&uid) {
                    let message = format!("Saw a job that the controller did not create or forgot: {name}");
                    self.event(true, "UnexpectedJob", message);
                }
                continue;
            };
            if self.is_active(&uid) {
                self.forget(&uid);
                let message = format!("Saw completed job: {name}, condition: {}", how.condition());
                self.event(false, "SawCompletedJob", message);
            }
            let completed = job.status.as_ref().and_then(|status| status.completion_time.as_ref());
            let last = &mut self.plan.status.last_successful_time;
            if how == FinishedAs::Complete && completed.map(|time| time.0) > last.as_ref().map(|time| time.0)
            {
                *last = completed.cloned();
            }
        }
        let missing = |job: &ObjectReference| !jobs.iter().any(|found| found.metadata.name == job.name);
        let active = self.plan.status.active.clone().unwrap_or_default();
        for job in active.iter().filter(|job| missing(job)) {
            self.forget(job.uid.as_deref().unwrap_or_default());
            let message = format!("Active job went missing: {}", job.name.as_deref().unwrap_or_default());
            self.event(false, "MissingJob", message);
        }
    }

    fn schedule(&mut self, jobs: &[Arc<Job>]) {
        let text = self.spec.schedule.clone();
        let zone = self.spec.time_zone.clone();
        if let Some(zone) = zone.as_deref().filter(|zone| time_zone(zone).is_none()) {
            let message = format!("invalid timeZone: {zone:?}: unknown time zone {zone}");
            return self.event(true, "UnknownTimeZone", message);
        }
        if self.spec.suspend == Some(true) {
            return;
        }
        if text.contains("TZ") {
            let message = format!(
                "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            );
            self.event(true, "UnsupportedSchedule", message);
        }
        let schedule = match Schedule::parse(&text, zone.as_deref()) {
            Ok(schedule) => schedule,
            Err(error) => {
                let message = format!("unparseable schedule: {text:?} : {error}");
                return self.event(true, "UnparseableSchedule", message);
            }
        };
        let missed = self.missed(&schedule, true);
        if schedule.next(missed.since).is_none() {
            // The day never comes, such as 31 February. The message has the words of the original, with both
            // times zero.
            let message = format!(
                "invalid schedule: {text} : time difference between two schedules is less than 1 second"
            );
            return self.event(true, "InvalidSchedule", message);
        }
        self.plan.wake_at = self.next_look(&schedule);
        if let Some(time) = missed.latest {
            if missed.many {
                let message = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check \
                               clock skew";
                self.event(true, "TooManyMissedTimes", message.to_owned());
            }
            self.start(time, jobs);
        }
    }

    /// Returns the latest time of the schedule that was not acted upon.
    fn missed(&self, schedule: &Schedule, within_deadline: bool) -> Missed {
        let created = self.cron_job.metadata.creation_timestamp.as_ref();
        let last = self.plan.status.last_schedule_time.as_ref().or(created);
        let mut since = last.map_or(self.now, |time| time.0);
        if within_deadline && let Some(deadline) = self.spec.starting_deadline_seconds {
            let earliest = self.now.checked_sub(SignedDuration::from_secs(deadline));
            since = since.max(earliest.unwrap_or(Timestamp::MIN));
        }
        let none = Missed { since, latest: None, any: false, many: false };
        let Some(first) = schedule.next(since).filter(|first| *first <= self.now) else { return none };
        let Some(second) = schedule.next(first).filter(|second| *second <= self.now) else {
            return Missed { latest: Some(first), any: true, ..none };
        };
        // Times that are regular need not be walked through: begin near the end.
        let distance = second.duration_since(first).as_secs().max(1);
        let count = self.now.duration_since(first).as_secs() / distance + 1;
        let jump = SignedDuration::from_secs((count - 2).max(0).saturating_mul(distance));
        let mut latest = None;
        let mut next = first.checked_add(jump).ok().and_then(|time| schedule.next(time));
        while let Some(time) = next.filter(|time| *time <= self.now) {
            latest = Some(time);
            next = schedule.next(time);
        }
        Missed { latest, any: true, many: count > MANY_MISSED, ..none }
    }

    fn next_look(&self, schedule: &Schedule) -> Option<Timestamp> {
        let missed = self.missed(schedule, false);
        let from = missed.latest.unwrap_or(if missed.any { self.now } else { missed.since });
        schedule.next(from)?.checked_add(DELTA).ok()
    }

    fn start(&mut self, time: Timestamp, jobs: &[Arc<Job>]) {
        let deadline = self.spec.starting_deadline_seconds.map(SignedDuration::from_secs);
        let latest = deadline.and_then(|deadline| time.checked_add(deadline).ok());
        if latest.is_some_and(|latest| latest < self.now) {
            let shown = time.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S %z").to_string();
            return self.event(
                true,
                "MissSchedule",
                format!("Missed scheduled time to start a job: {shown}"),
            );
        }
        let name = format!("{}-{}", self.cron_job.name_any(), time.as_second() / 60);
        let active = self.plan.status.active.clone().unwrap_or_default();
        let done = self.plan.status.last_schedule_time.as_ref().is_some_and(|last| last.0 == time);
        if done || active.iter().any(|job| job.name.as_deref() == Some(&name)) {
            return;
        }
        match self.spec.concurrency_policy.as_deref() {
            Some("Forbid") if !active.is_empty() => {
                let message =
                    "Not starting job because prior execution is running and concurrency policy is Forbid";
                return self.event(false, "JobAlreadyActive", message.to_owned());
            }
            Some("Replace") => {
                for job in jobs.iter().filter(|job| active.iter().any(|other| other.uid == job.metadata.uid))
                {
                    self.delete(Arc::clone(job));
                }
            }
            _ => {}
        }
        self.plan.scheduled = Some(time);
        self.plan.create = Some(self.job(name, time));
    }

    fn job(&self, name: String, time: Timestamp) -> Job {
        let template = self.spec.job_template.clone();
        let metadata = template.metadata.unwrap_or_default();
        let zone = self.spec.time_zone.as_deref().and_then(time_zone).unwrap_or(TimeZone::UTC);
        let utc = zone == TimeZone::UTC;
        let local = time.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string();
        let mut annotations = metadata.annotations.unwrap_or_default();
        annotations.insert(SCHEDULED_AT.to_owned(), if utc { local.replace("+00:00", "Z") } else { local });
        Job {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: self.cron_job.namespace(),
                labels: metadata.labels,
                annotations: Some(annotations),
                owner_references: adoption::controller_reference(self.cron_job).map(|owner| vec![owner]),
                ..ObjectMeta::default()
            },
            spec: template.spec,
            status: None,
        }
    }
}

/// Adds a Job that was created to the status.
pub(super) fn add_active(status: &mut CronJobStatus, job: &Job, scheduled: Timestamp) {
    status.active.get_or_insert_default().push(ObjectReference {
        api_version: Some("batch/v1".to_owned()),
        kind: Some("Job".to_owned()),
        name: job.metadata.name.clone(),
        namespace: job.metadata.namespace.clone(),
        resource_version: job.metadata.resource_version.clone(),
        uid: job.metadata.uid.clone(),
        field_path: None,
    });
    status.last_schedule_time = Some(Time(scheduled));
}

#[cfg(test)]
mod tests;
