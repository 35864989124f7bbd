//! The history of the pods, from the log of the server: a watch that begins before the first pod.

use std::collections::BTreeMap;

use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{Namespace, Pod};
use kube::Api;
use kube::api::{WatchEvent, WatchParams};
use windlass::prelude::*;
use windlass_test::eventually;

use crate::{SOON, user::User};

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Created(u32),
    Ready(u32),
    /// The pod is not ready any more.
    Unready(u32),
    /// The deletion of the pod began.
    Deleting(u32),
    Gone(u32),
}

/// Reads the log of the pods of the namespace up to the present.
pub(crate) async fn of(user: &User) -> Vec<Entry> {
    eventually(SOON, || async { try_of(user).await.ok_or("the log ended early") }).await
}

async fn try_of(user: &User) -> Option<Vec<Entry>> {
    // A change of a pod that is in no set marks the end of the log.
    let mark: Pod = serde_json::from_value(serde_json::json!({
        "metadata": { "generateName": "mark-" },
        "spec": { "containers": [{ "name": "main", "image": "nginx" }], "schedulerName": "none" },
    }))
    .ok()?;
    let mark = user.pods().create(&kube::api::PostParams::default(), &mark).await.ok()?;
    // The namespace is older than all pods in it.
    let namespaces: Api<Namespace> = Api::all(user.0.clone());
    let begin = namespaces.get("default").await.ok()?.resource_version()?;
    let events = user.pods().watch(&WatchParams::default(), &begin).await.ok()?;
    let mut events = events.boxed();
    let (mut entries, mut known) = (Vec::new(), BTreeMap::new());
    while let Some(event) = events.try_next().await.ok()? {
        let (pod, is_gone) = match event {
            WatchEvent::Added(pod) | WatchEvent::Modified(pod) => (pod, false),
            WatchEvent::Deleted(pod) => (pod, true),
            _ => return None,
        };
        if pod.name_any() == mark.name_any() {
            return Some(entries);
        }
        let Some(index) = pod.labels().get("apps.abc.com/pod-index").and_then(|index| index.parse().ok())
        else {
            continue;
        };
        let (was_ready, was_deleting) = *known.entry(index).or_insert_with(|| {
            entries.push(Entry::Created(index));
            (false, false)
        });
        let is_deleting = pod.metadata.deletion_timestamp.is_some();
        let conditions = pod.status.and_then(|status| status.conditions).unwrap_or_default();
        let is_ready =
            conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True");
        if (is_deleting || is_gone) && !was_deleting {
            entries.push(Entry::Deleting(index));
        }
        if is_ready != was_ready && !is_deleting {
            entries.push(if is_ready { Entry::Ready(index) } else { Entry::Unready(index) });
        }
        known.insert(index, (is_ready, is_deleting));
        if is_gone {
            entries.push(Entry::Gone(index));
            known.remove(&index);
        }
    }
    None
}

/// The cache of a controller may be a moment old: a pod that was ready this many entries ago may count as
/// ready.
const LAG: usize = 2;

/// Panics if a pod was created before all pods with lower indexes were ready.
pub(crate) fn check_creations(log: &[Entry]) {
    // For each pod: ready, or the entry at which the pod ceased to be ready.
    let mut pods: BTreeMap<u32, Result<(), Option<usize>>> = BTreeMap::new();
    for (at, entry) in log.iter().enumerate() {
        match entry {
            Entry::Created(index) => {
                for lower in 0..*index {
                    let is_ready = match pods.get(&lower) {
                        Some(Ok(())) => true,
                        Some(Err(Some(since))) => at - since <= LAG,
                        _ => false,
                    };
                    assert!(is_ready, "pod {index} was created when pod {lower} was not ready: {log:?}");
                }
                pods.insert(*index, Err(None));
            }
            Entry::Ready(index) => drop(pods.insert(*index, Ok(()))),
            Entry::Unready(index) | Entry::Deleting(index) if pods.get(index) == Some(&Ok(())) => {
                pods.insert(*index, Err(Some(at)));
            }
            _ => {}
        }
    }
}
