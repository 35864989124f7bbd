//! Carries out the plan of a set, step by step.

use k8s_openapi::api::core::v1::Pod;
use windlass::{
    finalizer::{self, Finalize},
    prelude::*,
};

use crate::{
    OrderedSet, orphans,
    plan::{self, Step},
    pods::{self, Member, State},
    report::{self, Report},
};

/// Keeps a deleted set until all pods are gone, in order.
const FINALIZER: &str = "apps.abc.com/ordered-deletion";

/// The finalizer of `kubectl delete --cascade=orphan`: the garbage collector releases the pods, and the pods
/// stay.
const ORPHAN: &str = "orphan";

/// Returns the controller.
pub fn controller() -> Controller {
    Controller::of::<OrderedSet>(reconcile)
        .watch(Watch::owned(kind::<Pod>()).options(orphans::options()))
        .max_concurrent_reconciles(4)
        // Each step of a large set is a reconcile with a reason of its own.
        .allow_hot_loops()
        .needs(Permission::to::<Pod>([Verb::Create, Verb::Delete]))
        .needs(Permission::to::<Pod>([Verb::Patch]).optional())
        .needs(Permission::status_of::<OrderedSet>())
        .needs(Permission::to::<OrderedSet>([Verb::Patch]))
        // Before the adoption of a pod.
        .needs(Permission::to::<OrderedSet>([Verb::Get]).optional())
}

async fn reconcile(key: ObjectKey, cx: Context<OrderedSet>) -> Result<Action> {
    let set = match cx.get(&key) {
        Ok(Some(set)) => set,
        Ok(None) => return Ok(Action::done()),
        Err(error) if error.is_decode() => return release(&key, &cx, error).await,
        Err(error) => return Err(error),
    };
    finalizer::guard(&cx, set, FINALIZER, async |event| match event {
        Finalize::Apply(set) => {
            orphans::adopt(&cx, &set).await?;
            keep(&cx, &set, set.spec.replicas).await
        }
        Finalize::Cleanup(set) if set.finalizers().iter().any(|name| name == ORPHAN) => Ok(Action::done()),
        Finalize::Cleanup(set) => {
            let action = keep(&cx, &set, 0).await?;
            let left = !cx.owned_by::<Pod>(&set)?.is_empty();
            // `done` lets the set go.
            Ok(if left { Action::requeue_after(report::RETRY) } else { action })
        }
    })
    .await
}

/// Lets a deleted set go that does not decode; the garbage collector deletes the pods. A set that is not
/// deleted stays as an error.
async fn release(key: &ObjectKey, cx: &Context<OrderedSet>, error: Error) -> Result<Action> {
    let metadata = cx.lister::<PartialObjectMeta<OrderedSet>>()?.get(key)?;
    match metadata.filter(|set| set.metadata.deletion_timestamp.is_some()) {
        Some(set) => finalizer::guard(cx, set, FINALIZER, async |_| Ok(Action::done())).await,
        None => Err(error),
    }
}

/// Takes steps until a step has to wait, and reports the state.
async fn keep(cx: &Context<OrderedSet>, set: &OrderedSet, replicas: u32) -> Result<Action> {
    let revision = pods::revision_of(set)?;
    let (mut refusal, mut ended) = (None, Vec::new());
    let (step, members) = loop {
        let pods = cx.owned_by::<Pod>(set)?.complete()?;
        let members: Vec<Member> = pods.iter().filter_map(Member::of).collect();
        let step = plan::next(replicas, &revision, &members);
        match step {
            Step::Create(index) => {
                refusal = create(cx, pods::pod_of(set, index, &revision)?).await?;
                if refusal.is_some() {
                    break (step, members);
                }
            }
            Step::Delete(index) => {
                let is_it = |pod: &&Pod| Member::of(pod).is_some_and(|member| member.index == index);
                if let Some(pod) = pods.iter().find(is_it) {
                    if Member::of(pod).is_some_and(|member| member.state == State::Ended) {
                        ended.push(index);
                    }
                    // The pod may have changed since: a pod that became ready is not replaced for being slow.
                    cx.delete(pod).if_unchanged().await?;
                }
            }
            Step::WaitFor(_) | Step::Done => break (step, members),
        }
    };
    let wait = report::write(cx, set, &Report { replicas, revision, step, members, ended, refusal }).await?;
    Ok(wait.map_or_else(Action::done, Action::requeue_after))
}

/// Creates a pod. Returns the reason of a refusal that only a user or another controller can resolve.
async fn create(cx: &Context<OrderedSet>, pod: Pod) -> Result<Option<String>> {
    if cx.lister::<Pod>()?.get(&ObjectKey::of(&pod))?.is_some() {
        return Ok(Some("its name is taken by a pod that is not of this set".to_owned()));
    }
    match cx.create(pod).await {
        Ok(_) => Ok(None),
        Err(error) if (error.is_forbidden() && !error.is_namespace_terminating()) || error.is_invalid() => {
            Ok(Some(error.to_string()))
        }
        Err(error) => Err(error),
    }
}
