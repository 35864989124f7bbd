//! The conditions of Jobs.

use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// How a Job finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FinishedAs {
    Complete,
    Failed,
}

impl FinishedAs {
    /// Returns the type of the condition.
    pub(crate) fn condition(self) -> &'static str {
        match self {
            Self::Complete => "Complete",
            Self::Failed => "Failed",
        }
    }
}

/// Returns the kind and time of a finished Job's end.
pub(crate) fn finished(job: &Job) -> Option<(FinishedAs, Option<Timestamp>)> {
    let conditions = job.status.as_ref()?.conditions.as_deref().unwrap_or_default();
    conditions.iter().filter(|condition| condition.status == "True").find_map(|condition| {
        let how = match condition.type_.as_str() {
            "Complete" => FinishedAs::Complete,
            "Failed" => FinishedAs::Failed,
            _ => return None,
        };
        Some((how, condition.last_transition_time.as_ref().map(|time| time.0)))
    })
}

/// Returns the condition of this type if it is true.
pub(super) fn holding<'a>(list: &'a [JobCondition], kind: &str) -> Option<&'a JobCondition> {
    list.iter().find(|condition| condition.type_ == kind && condition.status == "True")
}

pub(super) fn new(kind: &str, reason: &str, message: &str, now: Timestamp) -> JobCondition {
    JobCondition {
        type_: kind.to_owned(),
        status: "True".to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_probe_time: Some(Time(now)),
        last_transition_time: Some(Time(now)),
    }
}

/// Sets a condition. A missing condition is not added as `False`. Returns whether the list has changed.
pub(super) fn ensure(list: &mut Vec<JobCondition>, next: JobCondition) -> bool {
    match list.iter_mut().find(|condition| condition.type_ == next.type_) {
        Some(old) => {
            let changed =
                (&old.status, &old.reason, &old.message) != (&next.status, &next.reason, &next.message);
            if changed {
                *old = next;
            }
            changed
        }
        None if next.status == "False" => false,
        None => {
            list.push(next);
            true
        }
    }
}
