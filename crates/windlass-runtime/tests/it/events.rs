use k8s_openapi::api::core::v1::{ConfigMap, Event};
use kube_client::{Api, api::ListParams};
use windlass_runtime::{Action, Context, Controller, Error, Manager, ObjectKey};
use windlass_test::{TestCluster, eventually};

use crate::fixture::{SOON, create_config_map, expect_eq, run};

#[tokio::test]
async fn events_are_written_and_repeated_ones_counted() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let map = create_config_map(&client, "a").await;
    let controller = Controller::of::<ConfigMap>(|key: ObjectKey, cx: Context<ConfigMap>| async move {
        let Some(map) = cx.get(&key)? else { return Ok(Action::done()) };
        for _ in 0..3 {
            cx.recorder().normal(&*map, "Seen", "it was seen");
        }
        cx.recorder().warning(&*map, "Odd", "it looks odd");
        Ok::<_, Error>(Action::done())
    })
    .named("looker");
    let running = run(Manager::new(client.clone()).controller(controller));
    let events: Api<Event> = Api::default_namespaced(client);
    let about = |event: &Event| event.involved_object.name.as_deref() == Some("a");
    eventually(SOON, || async {
        let listed = events.list(&ListParams::default()).await.map_err(|e| e.to_string())?;
        let told: Vec<_> = listed
            .items
            .iter()
            .filter(|event| about(event))
            .map(|event| {
                let text = |text: &Option<String>| text.clone().unwrap_or_default();
                (text(&event.type_), text(&event.reason), text(&event.message), event.count.unwrap_or(0))
            })
            .collect();
        let mut told = told;
        told.sort();
        let line =
            |type_: &str, reason: &str, note: &str, count| (type_.into(), reason.into(), note.into(), count);
        expect_eq(
            told,
            vec![line("Normal", "Seen", "it was seen", 3), line("Warning", "Odd", "it looks odd", 1)],
        )
        .map_err(|e| e.to_string())
    })
    .await;
    running.stop().await.expect("a graceful end");
    let listed = events.list(&ListParams::default()).await.expect("listed");
    let seen = listed.items.iter().find(|event| about(event)).expect("there");
    assert_eq!(seen.source.as_ref().and_then(|source| source.component.as_deref()), Some("looker"));
    assert_eq!(seen.involved_object.uid, map.metadata.uid);
    assert_eq!(seen.involved_object.kind.as_deref(), Some("ConfigMap"));
}

#[tokio::test]
async fn what_was_recorded_last_is_written_before_the_end() {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let map = create_config_map(&client, "a").await;
    let manager =
        Manager::new(client.clone()).runnable("once", move |cx: windlass_runtime::RunContext| async move {
            cx.shutdown().requested().await;
            cx.recorder().normal(&map, "Stopping", "the end is near");
            Ok::<_, Error>(())
        });
    let running = run(manager);
    tokio::task::yield_now().await;
    running.stop().await.expect("a graceful end");
    let events: Api<Event> = Api::default_namespaced(client);
    let listed = events.list(&ListParams::default()).await.expect("listed");
    assert!(listed.items.iter().any(|event| event.reason.as_deref() == Some("Stopping")));
}
