//! A pod that cannot be created blocks the set, and the set reports the reason.

use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use serde_json::json;
use windlass_test::eventually;

use crate::{SOON, history, order::Fixture};

#[tokio::test]
async fn a_quota_is_reported_until_there_is_room() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    let quotas: Api<ResourceQuota> = Api::default_namespaced(user.0.clone());
    let quota = json!({ "metadata": { "name": "few" }, "spec": { "hard": { "pods": "1" } } });
    let quota: ResourceQuota = serde_json::from_value(quota).expect("a quota");
    quotas.create(&PostParams::default(), &quota).await.expect("created");
    eventually(SOON, || async {
        let status = quotas.get("few").await.map_err(|error| error.to_string())?.status;
        if status.is_some_and(|status| status.used.is_some()) {
            Ok(())
        } else {
            Err("not counted".to_owned())
        }
    })
    .await;

    user.create("web", 2, json!({})).await;
    let message = user.blocked("web", "FailedCreate").await;
    assert!(
        message.starts_with("pod web-1 cannot be created: ") && message.contains("exceeded quota: few"),
        "{message}"
    );
    user.recorded(&format!("Warning FailedCreate {message}")).await;
    let status = user.sets().get("web").await.expect("got").status.expect("a status");
    assert_eq!((status.replicas, status.ready_replicas), (1, 1), "the rest of the status is of now");

    quotas.delete("few", &DeleteParams::default()).await.expect("deleted");
    user.settled("web", 2).await;
    user.recorded("Normal Unblocked no pod keeps the others waiting").await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_name_that_is_taken_is_reported() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    let other = json!({ "metadata": { "name": "web-1" }, "spec": { "containers": [{ "name": "main", "image": "nginx" }] } });
    let other: Pod = serde_json::from_value(other).expect("a pod");
    user.pods().create(&PostParams::default(), &other).await.expect("created");
    user.create("web", 2, json!({})).await;
    let message = user.blocked("web", "FailedCreate").await;
    assert_eq!(message, "pod web-1 cannot be created: its name is taken by a pod that is not of this set");
    user.delete_pod("web-1").await;
    user.settled("web", 2).await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_name_that_no_pod_can_have_is_reported() {
    let fixture = Fixture::start().await;
    let user = &fixture.user;
    user.create("web.example", 1, json!({})).await;
    let message = user.blocked("web.example", "FailedCreate").await;
    assert!(message.contains("spec.hostname: Invalid value"), "{message}");
    user.sets().delete("web.example", &DeleteParams::default()).await.expect("deleted");
    fixture.cluster.gone::<ordered_set::OrderedSet>("web.example").await;
    assert!(history::of(user).await.is_empty());
    fixture.stop().await;
}
