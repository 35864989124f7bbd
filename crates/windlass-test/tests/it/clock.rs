//! A reconciler that takes the time from the clock of a test.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::Patch;
use kube_core::ObjectMeta;
use serde_json::json;
use windlass_runtime::{Action, Context, Controller, ObjectKey, Result};
use windlass_test::{TestClock, fake::FakeCluster};

/// Writes the time of the last check into the object.
async fn check(key: ObjectKey, cx: Context<ConfigMap>) -> Result<Action> {
    let now: Timestamp = cx.now();
    let patch = json!({ "data": { "checked": now.to_string() } });
    cx.patch::<ConfigMap, _>(&key, &Patch::Merge(patch)).await?;
    Ok(Action::requeue_after(Duration::from_secs(3600)))
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_reads_the_clock_of_the_test() -> Result<()> {
    let metadata = ObjectMeta {
        name: Some("a".to_owned()),
        namespace: Some("default".to_owned()),
        ..ObjectMeta::default()
    };
    let clock = TestClock::starting_at("2026-03-01T08:00:00Z".parse().expect("a time"));
    let object = ConfigMap { metadata, ..ConfigMap::default() };
    let fake = FakeCluster::builder().object(object).env(clock.env(1)).build();
    let (controller, key) = (Controller::of::<ConfigMap>(check), ObjectKey::namespaced("default", "a"));

    fake.reconcile(&controller, key.clone()).await?;
    clock.jump(SignedDuration::from_hours(24));
    fake.reconcile(&controller, key).await?;
    let checked: Vec<_> = fake.writes().iter().map(|write| write.body["data"]["checked"].clone()).collect();
    assert_eq!(checked, ["2026-03-01T08:00:00Z", "2026-03-02T08:00:00Z"]);
    Ok(())
}
