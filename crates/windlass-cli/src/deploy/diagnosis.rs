//! Prints why pods are not ready: events, and the last lines of logs.

use k8s_openapi::api::core::v1::{Event, Pod};
use kube::Client;
use kube::api::{Api, ListParams, LogParams, ResourceExt};

use crate::output::Output;

/// The number of pods, of events of a pod and of lines of a log that are printed.
const PODS: usize = 3;
const EVENTS: usize = 10;
const LINES: i64 = 20;

/// Prints the events and logs of pods that are not ready. Events and logs that cannot be read are left out, because the failure of the rollout is reported.
pub(super) async fn print(client: &Client, namespace: &str, pods: &[Pod], out: &mut Output) {
    for pod in pods.iter().filter(|pod| !is_ready(pod)).take(PODS) {
        let name = pod.name_any();
        print_events(client, namespace, pod, out).await;
        let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
        for container in statuses.into_iter().flatten() {
            print_log(client, namespace, &name, &container.name, container.restart_count > 0, out).await;
        }
    }
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Prints the events of the ReplicaSets of a Deployment: the events say why pods are not created.
pub(super) async fn print_of_replica_sets(
    client: &Client,
    namespace: &str,
    deployment: &str,
    out: &mut Output,
) {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let Ok(events) = events.list(&ListParams::default().fields("type=Warning")).await else { return };
    let is_of = |event: &&Event| {
        let object = &event.involved_object;
        let name = object.name.as_deref().unwrap_or_default();
        object.kind.as_deref() == Some("ReplicaSet")
            && name.strip_prefix(deployment).is_some_and(|rest| rest.starts_with('-'))
    };
    for event in events.items.iter().filter(is_of).take(EVENTS) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let name = text(&event.involved_object.name);
        out.line(format_args!(
            "event of replicaset/{name}: {}: {}",
            text(&event.reason),
            text(&event.message)
        ));
    }
}

async fn print_events(client: &Client, namespace: &str, pod: &Pod, out: &mut Output) {
    let events: Api<Event> = Api::namespaced(client.clone(), namespace);
    let uid = pod.uid().unwrap_or_default();
    let Ok(mut events) =
        events.list(&ListParams::default().fields(&format!("involvedObject.uid={uid}"))).await
    else {
        return;
    };
    events.items.sort_by_key(|event| event.last_timestamp.as_ref().map(|time| time.0));
    let skipped = events.items.len().saturating_sub(EVENTS);
    for event in events.items.iter().skip(skipped) {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        out.line(format_args!(
            "event of pod/{}: {} {}: {}",
            pod.name_any(),
            text(&event.type_),
            text(&event.reason),
            text(&event.message)
        ));
    }
}

/// Prints the last lines of a container's log: of the last run if the container has restarted.
async fn print_log(
    client: &Client,
    namespace: &str,
    pod: &str,
    container: &str,
    previous: bool,
    out: &mut Output,
) {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let parameters = |previous| LogParams {
        container: Some(container.to_owned()),
        tail_lines: Some(LINES),
        previous,
        ..LogParams::default()
    };
    let mut text = String::new();
    if previous {
        text = pods.logs(pod, &parameters(true)).await.unwrap_or_default();
    }
    if text.is_empty() {
        text = pods.logs(pod, &parameters(false)).await.unwrap_or_default();
    }
    for line in text.lines() {
        out.line(format_args!("log of pod/{pod}, {container}: {line}"));
    }
}
