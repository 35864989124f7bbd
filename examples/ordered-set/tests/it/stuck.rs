//! A pod that does not become ready keeps other pods waiting, and the set reports the pod.

use serde_json::json;
use windlass_test::eventually;

use crate::{
    SOON,
    history::{self, Entry::*},
    order::Fixture,
};

#[tokio::test]
async fn a_stuck_pod_blocks_and_is_reported() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("web", 3, json!({ "kubelet.windlass.dev/image-pull": "fail" })).await;
    // The Event has the first message. On a slow machine, the node gives the reason later.
    user.stuck("web", "pod web-0 is not ready (").await;
    user.recorded("Warning PodStuck pod web-0 is not ready").await;
    assert_eq!(history::of(user).await, [Created(0)]);

    // The pod now has an older template, and is not ready: the pod is replaced.
    let repaired = json!({ "metadata": { "annotations": { "kubelet.windlass.dev/image-pull": null } } });
    user.change("web", json!({ "template": repaired })).await;
    user.settled("web", 3).await;
    user.blocked("web", "InOrder").await;
    user.recorded("Normal Unblocked no pod keeps the others waiting").await;
    history::check_creations(&history::of(user).await);
    fixture.stop().await;
}

#[tokio::test]
async fn an_update_stops_at_a_pod_that_does_not_become_ready() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("web", 3, json!({})).await;
    user.settled("web", 3).await;
    let broken = json!({ "metadata": { "annotations": { "kubelet.windlass.dev/image-pull": "fail" } } });
    user.change("web", json!({ "template": broken })).await;
    user.stuck("web", "pod web-2 is not ready").await;
    // A smaller set does not need this pod.
    user.scale("web", 2).await;
    let repaired = json!({ "metadata": { "annotations": { "kubelet.windlass.dev/image-pull": null } } });
    user.change("web", json!({ "template": repaired })).await;
    user.settled("web", 2).await;
    let log = history::of(user).await;
    history::check_creations(&log);
    assert_eq!(log[6..9], [Deleting(2), Gone(2), Created(2)]);
    fixture.stop().await;
}

/// Each pod that ends is replaced, and the next pod ends as well.
#[tokio::test]
async fn pods_that_end_again_and_again_block() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    let ends = json!({
        "metadata": { "annotations": { "kubelet.windlass.dev/run-for": "300ms", "kubelet.windlass.dev/exit-code": "1" } },
        "spec": { "restartPolicy": "Never" },
    });
    user.create("web", 2, json!({})).await;
    user.settled("web", 2).await;
    // The times of Kubernetes are whole seconds: a pod that is ready for 300 ms may seem to have been for a second.
    user.change("web", json!({ "template": ends, "patienceSeconds": 2 })).await;
    let message = user.blocked("web", "PodStuck").await;
    assert!(message.starts_with("pod web-"), "{message}");
    let since = user.condition("web", "Blocked").await.last_transition_time;
    // Some pods later, the set is still blocked by the same index.
    let count = |log: &[history::Entry]| log.iter().filter(|entry| matches!(entry, Created(_))).count();
    let before = count(&history::of(user).await);
    eventually(SOON, || async {
        let now = count(&history::of(user).await);
        if now >= before + 3 { Ok(()) } else { Err(format!("{now} pods, and {before} before")) }
    })
    .await;
    let blocked = user.condition("web", "Blocked").await;
    assert_eq!((blocked.status.as_str(), &blocked.last_transition_time), ("True", &since), "{blocked:?}");

    let runs = json!({ "metadata": { "annotations": { "kubelet.windlass.dev/run-for": "forever" } } });
    user.change("web", json!({ "template": runs })).await;
    user.settled("web", 2).await;
    user.blocked("web", "InOrder").await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_pod_without_the_label_of_its_index_stays_where_it_is() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("web", 2, json!({})).await;
    user.settled("web", 2).await;
    user.label_pod("web-1", json!({ "apps.abc.com/pod-index": null })).await;
    user.change("web", json!({ "replicas": 3 })).await;
    user.settled("web", 3).await;
    user.blocked("web", "InOrder").await;
    user.change("web", json!({ "replicas": 1 })).await;
    user.settled("web", 1).await;
    fixture.stop().await;
}
