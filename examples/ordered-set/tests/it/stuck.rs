//! A pod that does not become ready keeps the others waiting, and the set says so.

use serde_json::json;

use crate::{
    history::{self, Entry::*},
    order::Fixture,
};

#[tokio::test]
async fn a_stuck_pod_blocks_and_is_reported() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("web", 3, json!({ "kubelet.windlass.dev/image-pull": "fail" })).await;
    let message = user.blocked("web", "PodStuck").await;
    assert!(message.starts_with("pod web-0 is not ready ("), "{message}");
    user.recorded(&format!("Warning PodStuck {message}")).await;
    assert_eq!(history::of(user).await, [Created(0)]);

    // The pod is of an older template now, and not ready: it is replaced.
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
    let message = user.blocked("web", "PodStuck").await;
    assert!(message.starts_with("pod web-2 is not ready"), "{message}");
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
