//! Carries the plan of a set out, one step at a time.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::Pod,
    jiff::{SignedDuration, Timestamp},
};
use windlass::{
    conditions,
    finalizer::{self, Finalize},
    prelude::*,
};

use crate::{
    OrderedSet, OrderedSetStatus,
    plan::{self, Step},
    pods::{self, Member, State},
};

/// Keeps a deleted set until its pods are gone, in their order.
const FINALIZER: &str = "apps.abc.com/ordered-deletion";

/// How soon a set whose pods are being deleted is looked at again if nothing is reported.
const RETRY: Duration = Duration::from_secs(10);

/// Returns the controller.
pub fn controller() -> Controller {
    Controller::of::<OrderedSet>(reconcile)
        .owns::<Pod>()
        .concurrency(4)
        // One pod after the other: a large set is worked on often, and each time for a reason.
        .allow_hot_loops()
        .needs(Permission::to::<Pod>([Verb::Create, Verb::Delete]))
        .needs(Permission::status_of::<OrderedSet>())
        .needs(Permission::to::<OrderedSet>([Verb::Patch]))
}

async fn reconcile(key: ObjectKey, cx: Context<OrderedSet>) -> Result<Action> {
    let Some(set) = cx.get(&key)? else { return Ok(Action::done()) };
    finalizer::guard(&cx, set, FINALIZER, async |event| match event {
        Finalize::Apply(set) => keep(&cx, &set, set.spec.replicas).await,
        Finalize::Cleanup(set) => {
            let action = keep(&cx, &set, 0).await?;
            let left = !cx.owned_by::<Pod>(&set)?.is_empty();
            // `done` lets the set go.
            Ok(if left { Action::requeue_after(RETRY) } else { action })
        }
    })
    .await
}

/// Takes steps until one has to be waited for, and reports the state.
async fn keep(cx: &Context<OrderedSet>, set: &OrderedSet, replicas: u32) -> Result<Action> {
    let revision = pods::revision_of(set)?;
    let step = loop {
        let pods = cx.owned_by::<Pod>(set)?.complete()?;
        let members: Vec<Member> = pods.iter().filter_map(Member::of).collect();
        let step = plan::next(replicas, &revision, &members);
        match step {
            Step::Create(index) => drop(cx.create(pods::pod_of(set, index, &revision)?).await?),
            Step::Delete(index) => {
                let is_it = |pod: &&Pod| Member::of(pod).is_some_and(|member| member.index == index);
                if let Some(pod) = pods.iter().find(is_it) {
                    // It may have changed since: a pod that became ready is not replaced for being slow.
                    cx.delete(pod).if_unchanged().await?;
                }
            }
            Step::WaitFor(_) | Step::Done => break step,
        }
    };
    report(cx, set, &revision, &step).await
}

async fn report(cx: &Context<OrderedSet>, set: &OrderedSet, revision: &str, step: &Step) -> Result<Action> {
    let pods = cx.owned_by::<Pod>(set)?.complete()?;
    let members: Vec<Member> = pods.iter().filter_map(Member::of).collect();
    let count = |matches: &dyn Fn(&&Member) -> bool| members.iter().filter(matches).count() as u32;
    let mut status = OrderedSetStatus {
        replicas: members.len() as u32,
        ready_replicas: count(&|member| member.state == State::Ready),
        updated_replicas: count(&|member| member.revision == revision),
        selector: format!("{}={}", pods::SET, set.name_any()),
        conditions: set.status.clone().unwrap_or_default().conditions,
    };
    let (wait, problem) = match step {
        Step::WaitFor(member) => patience(set, member, cx.now()),
        _ => (None, None),
    };
    let (ready, blocked) = (ready(set, step), blocked(problem.as_deref()));
    let was_blocked = conditions::is_true(&status.conditions, "Blocked");
    for condition in [ready, blocked] {
        let condition = condition.observed_generation(set.metadata.generation);
        conditions::set(&mut status.conditions, condition, cx.now());
    }
    cx.update_status(set, status).await?;
    match problem {
        Some(problem) if !was_blocked => cx.recorder().warning(set, "PodStuck", problem),
        None if was_blocked => cx.recorder().normal(set, "Unblocked", "no pod keeps the others waiting"),
        _ => {}
    }
    Ok(wait.map_or_else(Action::done, Action::requeue_after))
}

/// Returns how long a pod may still keep others waiting, or else what is wrong with it.
fn patience(set: &OrderedSet, member: &Member, now: Timestamp) -> (Option<Duration>, Option<String>) {
    let Some(since) = member.since else { return (None, None) };
    let limit = SignedDuration::from_secs(set.spec.patience_seconds.into());
    let left = Duration::try_from(limit - now.duration_since(since)).unwrap_or_default();
    if !left.is_zero() {
        return (Some(left), None);
    }
    let state = match &member.state {
        State::NotReady(Some(reason)) => format!("is not ready ({reason})"),
        State::Terminating => "does not end".to_owned(),
        _ => "is not ready".to_owned(),
    };
    let (name, index) = (set.name_any(), member.index);
    (
        None,
        Some(format!("pod {name}-{index} {state}: no other pod is created, updated or deleted before it is")),
    )
}

fn ready(set: &OrderedSet, step: &Step) -> conditions::NewCondition {
    match step {
        Step::WaitFor(member) => {
            let (name, index) = (set.name_any(), member.index);
            conditions::condition("Ready", false, "Waiting", format!("waits for pod {name}-{index}"))
        }
        _ => {
            conditions::condition("Ready", true, "AllReady", format!("{} pods are ready", set.spec.replicas))
        }
    }
}

fn blocked(problem: Option<&str>) -> conditions::NewCondition {
    match problem {
        Some(problem) => conditions::condition("Blocked", true, "PodStuck", problem),
        None => conditions::condition("Blocked", false, "InOrder", "no pod keeps the others waiting"),
    }
}
