//! The status and the Events of a set.

use std::time::Duration;

use k8s_openapi::jiff::{SignedDuration, Timestamp};
use windlass::{conditions, prelude::*};

use crate::{
    OrderedSet, OrderedSetStatus, Waiting,
    plan::Step,
    pods::{self, Member, State},
    waiting::Progress,
};

/// The interval at which a set is checked that waits without a watch, for example for room in a quota.
pub(crate) const RETRY: Duration = Duration::from_secs(10);

/// The state of a set without a possible step.
#[derive(Debug)]
pub(crate) struct Report {
    /// The number of pods to keep.
    pub(crate) replicas: u32,
    /// The revision of the present template.
    pub(crate) revision: String,
    /// The step that has to be waited for.
    pub(crate) step: Step,
    /// The pods.
    pub(crate) members: Vec<Member>,
    /// The indexes of pods that had ended and were deleted.
    pub(crate) ended: Vec<u32>,
    /// Why the pod of `step` cannot be created.
    pub(crate) refusal: Option<String>,
}

/// Why a set is blocked: the reason and the message of the condition and of the Event.
struct Problem {
    reason: &'static str,
    message: String,
}

/// Writes the status, and records an Event if the set is blocked, or is not any more. Returns how soon to look again.
pub(crate) async fn write(
    cx: &Context<OrderedSet>,
    set: &OrderedSet,
    report: &Report,
) -> Result<Option<Duration>> {
    let before = set.status.clone().unwrap_or_default();
    let patience = SignedDuration::from_secs(set.spec.patience_seconds.into());
    let now = cx.now();
    let waiting = Waiting::next(&before.waiting, &report.progress(), patience, now);
    let problem = report.problem(set, &waiting, patience, now);
    let wait = report.wait(&waiting, patience, now);
    let count = |matches: &dyn Fn(&&Member) -> bool| report.members.iter().filter(matches).count() as u32;
    let mut status = OrderedSetStatus {
        replicas: report.members.len() as u32,
        ready_replicas: count(&|member| member.state == State::Ready),
        updated_replicas: count(&|member| member.revision == report.revision),
        selector: format!("{}={}", pods::SET, set.name_any()),
        waiting,
        conditions: before.conditions.clone(),
    };
    for condition in [report.ready(set), blocked(problem.as_ref())] {
        let condition = condition.observed_generation(set.metadata.generation);
        conditions::set(&mut status.conditions, condition, now);
    }
    cx.update_status(set, status).await?;
    let known = before.conditions.iter().find(|known| known.type_ == "Blocked" && known.status == "True");
    match (problem, known) {
        (Some(Problem { reason, .. }), Some(known)) if known.reason == reason => {}
        (Some(Problem { reason, message }), _) => cx.recorder().warning(set, reason, message),
        (None, Some(_)) => cx.recorder().normal(set, "Unblocked", "no pod keeps the others waiting"),
        (None, None) => {}
    }
    Ok(wait)
}

impl Report {
    fn progress(&self) -> Progress<'_> {
        // The time of a pod begins when the pod can be created.
        let waits_for = self.step.index().filter(|_| self.refusal.is_none());
        Progress { replicas: self.replicas, waits_for, ended: &self.ended, members: &self.members }
    }

    /// Returns the reason for a blocked set: a pod cannot be created, or has kept other pods waiting for
    /// longer than `patience`.
    fn problem(
        &self,
        set: &OrderedSet,
        waiting: &[Waiting],
        patience: SignedDuration,
        now: Timestamp,
    ) -> Option<Problem> {
        let (name, waits_for) = (set.name_any(), self.step.index());
        if let (Some(index), Some(refusal)) = (waits_for, &self.refusal) {
            let message = format!("pod {name}-{index} cannot be created: {refusal}");
            return Some(Problem { reason: "FailedCreate", message });
        }
        let is_late = |waiting: &&Waiting| now.duration_since(waiting.since.0) >= patience;
        let late = waiting.iter().filter(is_late);
        // A ready pod does not block a set; a pod that has been ready only briefly keeps a blocked set
        // blocked.
        let late = late.filter(|waiting| waits_for == Some(waiting.index) || is_blocked(set));
        let late = late.max_by_key(|waiting| waits_for == Some(waiting.index))?;
        let others = "no other pod is created, updated or deleted before it is";
        let state = match &self.step {
            _ if late.replacements > 0 => {
                format!("is not ready for long (replacements: {})", late.replacements)
            }
            Step::WaitFor(Member { index, state: State::Terminating, .. }) if *index == late.index => {
                format!("does not end: {others} gone")
            }
            Step::WaitFor(Member { index, state: State::NotReady(Some(reason)), .. })
                if *index == late.index =>
            {
                format!("is not ready ({reason}): {others} ready")
            }
            _ => format!("is not ready: {others} ready"),
        };
        Some(Problem { reason: "PodStuck", message: format!("pod {name}-{} {state}", late.index) })
    }

    /// Returns the time until the passing of time changes the report.
    fn wait(&self, waiting: &[Waiting], patience: SignedDuration, now: Timestamp) -> Option<Duration> {
        if self.refusal.is_some() {
            return Some(RETRY);
        }
        let change = |waiting: &Waiting| match self.step.index() {
            Some(index) if index == waiting.index => waiting.since.0.checked_add(patience).ok(),
            _ => waiting.steady_at(&self.members, patience),
        };
        let next = waiting.iter().filter_map(change).filter(|at| *at > now).min()?;
        Duration::try_from(next.duration_since(now)).ok()
    }

    fn ready(&self, set: &OrderedSet) -> conditions::NewCondition {
        let Some(index) = self.step.index() else {
            let message = format!("{} pods are ready", self.replicas);
            return conditions::condition("Ready", true, "AllReady", message);
        };
        let message = format!("waits for pod {}-{index}", set.name_any());
        conditions::condition("Ready", false, "Waiting", message)
    }
}

fn is_blocked(set: &OrderedSet) -> bool {
    set.status.as_ref().is_some_and(|status| conditions::is_true(&status.conditions, "Blocked"))
}

fn blocked(problem: Option<&Problem>) -> conditions::NewCondition {
    match problem {
        Some(Problem { reason, message }) => conditions::condition("Blocked", true, *reason, message),
        None => conditions::condition("Blocked", false, "InOrder", "no pod keeps the others waiting"),
    }
}
