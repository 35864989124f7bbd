use k8s_openapi::api::{
    core::v1::{ConfigMap, Event, ObjectReference},
    events::v1::Event as SeriesEvent,
};
use kube_client::{Api, api::ListParams};
use windlass_runtime::{
    Action, Context, Controller, Error, Manager, ObjectKey, RunContext, Runnable,
    events::{EventType, EventsApi},
};
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
            cx.recorder().normal(&map, "Seen", "it was seen");
        }
        cx.recorder().warning(&map, "Odd", "it looks odd");
        Ok::<_, Error>(Action::done())
    })
    .named("looker");
    let running = cluster.run_restricted(Manager::new(client.clone()).controller(controller)).await;
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
        Manager::new(client.clone()).runnable(Runnable::new("once", move |cx: RunContext| async move {
            cx.shutdown().requested().await;
            cx.recorder().normal(&map, "Stopping", "the end is near");
            Ok::<_, Error>(())
        }));
    let running = cluster.run_restricted(manager).await;
    tokio::task::yield_now().await;
    running.stop().await.expect("a graceful end");
    let events: Api<Event> = Api::default_namespaced(client);
    let listed = events.list(&ListParams::default()).await.expect("listed");
    let stopping =
        listed.items.iter().find(|event| event.reason.as_deref() == Some("Stopping")).expect("there");
    let component = stopping.source.as_ref().and_then(|source| source.component.as_deref());
    assert_eq!(component, Some("once"), "the name of the runnable");
}

/// Records three equal events about a ConfigMap, and returns the events as both APIs show them.
async fn recorded_by(api: EventsApi) -> (Vec<Event>, Vec<SeriesEvent>) {
    let cluster = TestCluster::start().await;
    let client = cluster.client();
    let map = create_config_map(&client, "a").await;
    let other = create_config_map(&client, "b").await;
    let record = move |cx: RunContext| async move {
        let recorder = cx.recorder().named("binder");
        for _ in 0..3 {
            let event =
                recorder.about(&map).related(&other).action("Binding").annotation("example.com/try", "1");
            event.warning("FailedBinding", "they do not fit");
        }
        cx.shutdown().requested().await;
        Ok::<_, Error>(())
    };
    let running = cluster
        .run_restricted(Manager::new(client.clone()).events_api(api).runnable(Runnable::new("once", record)))
        .await;
    let events: Api<Event> = Api::default_namespaced(client.clone());
    eventually(SOON, || async {
        let listed = events.list(&ListParams::default()).await.map_err(|e| e.to_string())?;
        let reasons: Vec<_> = listed.items.iter().filter_map(|event| event.reason.as_deref()).collect();
        expect_eq(reasons, vec!["FailedBinding"]).map_err(|e| e.to_string())
    })
    .await;
    running.stop().await.expect("a graceful end");
    let series: Api<SeriesEvent> = Api::default_namespaced(client);
    let all = ListParams::default();
    (events.list(&all).await.expect("listed").items, series.list(&all).await.expect("listed").items)
}

#[tokio::test]
async fn related_objects_actions_and_annotations_are_written_by_both_apis() {
    for api in [EventsApi::CoreV1, EventsApi::EventsV1] {
        let (core, series) = recorded_by(api).await;
        let ([core], [event]) = (&core[..], &series[..]) else { panic!("{core:?} {series:?}") };
        assert_eq!(event.action.as_deref(), Some("Binding"), "{api:?}");
        assert_eq!(core.related.as_ref().and_then(|related| related.name.as_deref()), Some("b"), "{api:?}");
        let annotations = core.metadata.annotations.as_ref().expect("annotations");
        assert_eq!(annotations.get("example.com/try").map(String::as_str), Some("1"), "{api:?}");
        assert_eq!(event.reporting_controller.as_deref(), Some("binder"), "{api:?}");
    }
}

#[tokio::test]
async fn repeated_events_of_the_newer_api_are_a_series() {
    let (core, series) = recorded_by(EventsApi::EventsV1).await;
    let ([core], [event]) = (&core[..], &series[..]) else { panic!("{core:?} {series:?}") };
    assert_eq!(
        event.series.as_ref().map(|series| series.count),
        Some(3),
        "the last count is written at the end"
    );
    assert!(event.event_time.is_some());
    assert!(event.reporting_instance.as_deref().is_some_and(|instance| instance.starts_with("binder-")));
    assert_eq!(core.series.as_ref().and_then(|series| series.count), Some(3));
}

/// The name of a role may have characters that the name of an Event cannot.
#[tokio::test]
async fn events_about_a_role_are_written_by_both_apis() {
    for api in [EventsApi::CoreV1, EventsApi::EventsV1] {
        let cluster = TestCluster::start().await;
        let reporter = Runnable::new("reporter", |cx: RunContext| async move {
            let role = ObjectReference {
                api_version: Some("rbac.authorization.k8s.io/v1".to_owned()),
                kind: Some("ClusterRole".to_owned()),
                name: Some("system:Reader".to_owned()),
                ..ObjectReference::default()
            };
            cx.recorder().event(EventType::Normal, role, "Granted", "the role was granted");
            cx.shutdown().requested().await;
            Ok::<_, Error>(())
        });
        let running = run(Manager::new(cluster.client()).events_api(api).runnable(reporter));
        let events: Api<Event> = Api::default_namespaced(cluster.client());
        eventually(SOON, || async {
            let listed = events.list(&ListParams::default()).await.map_err(|e| e.to_string())?;
            let reasons: Vec<_> = listed.items.iter().filter_map(|event| event.reason.as_deref()).collect();
            expect_eq(reasons, vec!["Granted"]).map_err(|e| e.to_string())
        })
        .await;
        running.stop().await.expect("a graceful end");
    }
}
