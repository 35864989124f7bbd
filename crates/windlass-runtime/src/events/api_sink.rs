//! Writes events to the API server, one after the other.

use std::time::Duration;

use http::Request;
use k8s_openapi::{
    api::core::v1::{Event, EventSource},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube_client::Client;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::sleep};

use super::{
    RecordedEvent,
    correlator::{Correlator, Decision, Limits},
};
use crate::{client::request, env::Env, error::Result};

/// The number of attempts to write an event, as in client-go.
const TRIES: u32 = 12;

/// The pause between two attempts, as in client-go.
const PAUSE: Duration = Duration::from_secs(10);

pub(super) struct ApiSink {
    client: Client,
    env: Env,
    correlator: Correlator,
}

impl ApiSink {
    pub(super) fn new(client: Client, env: Env) -> Self {
        Self { client, env, correlator: Correlator::new(Limits::default()) }
    }

    /// Writes events until the queue is closed and empty.
    pub(super) async fn run(mut self, events: &mut mpsc::Receiver<RecordedEvent>) {
        while let Some(event) = events.recv().await {
            let now = self.env.now();
            match self.correlator.correlate(&event, now) {
                Decision::Drop => {}
                Decision::Create { key, note } => self.create(&event, key, note).await,
                Decision::Count { key, name, note, count, first } => {
                    let patch = json!({ "count": count, "lastTimestamp": Time(now), "message": note });
                    match self.with_retries(&event, || self.count(&event, &name, &patch)).await {
                        Some(Ok(())) => self.correlator.written(key, name, count, first),
                        // The API server deletes events after an hour by default.
                        Some(Err(error)) if error.is_not_found() => {
                            self.correlator.forget(&key);
                            self.create(&event, key, note).await;
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    async fn create(&mut self, recorded: &RecordedEvent, key: String, note: String) {
        let now = self.env.now();
        let event = self.event(recorded, note);
        let name = event.metadata.name.clone().unwrap_or_default();
        if let Some(Ok(())) = self.with_retries(recorded, || self.post(&event)).await {
            self.correlator.written(key, name, 1, now);
        }
    }

    fn event(&self, recorded: &RecordedEvent, note: String) -> Event {
        let now = self.env.now();
        let name = recorded.regarding.name.as_deref().unwrap_or("unknown");
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}{:04x}", now.as_nanosecond(), self.env.random() & 0xffff)),
                namespace: Some(namespace_of(recorded).to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: recorded.regarding.clone(),
            type_: Some(recorded.kind.to_string()),
            reason: Some(recorded.reason.clone()),
            message: Some(note),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            source: Some(EventSource { component: Some(recorded.component.to_string()), host: None }),
            reporting_component: Some(recorded.component.to_string()),
            ..Event::default()
        }
    }

    async fn post(&self, event: &Event) -> Result<()> {
        let namespace = event.metadata.namespace.as_deref().unwrap_or("default");
        let request = Request::post(format!("/api/v1/namespaces/{namespace}/events"));
        request::exchange::<Value>(&self.client, request, "application/json", event).await.map(drop)
    }

    async fn count(&self, recorded: &RecordedEvent, name: &str, patch: &Value) -> Result<()> {
        let request = Request::patch(format!("/api/v1/namespaces/{}/events/{name}", namespace_of(recorded)));
        request::exchange::<Value>(&self.client, request, "application/merge-patch+json", patch)
            .await
            .map(drop)
    }

    /// Tries until the server answers. Returns `None` if it never does.
    async fn with_retries<F>(&self, recorded: &RecordedEvent, write: impl Fn() -> F) -> Option<Result<()>>
    where
        F: Future<Output = Result<()>>,
    {
        for attempt in 0..TRIES {
            match write().await {
                Err(error) if error.is_transient() => {
                    tracing::debug!(%error, attempt, "writing an event failed, retrying");
                    // The first pause is random, so that many programs do not retry in step.
                    let pause = if attempt == 0 { PAUSE.mul_f64(self.env.fraction()) } else { PAUSE };
                    sleep(pause).await;
                }
                Err(error) if error.is_not_found() => return Some(Err(error)),
                Err(error) => {
                    tracing::warn!(%error, reason = recorded.reason, "the API server rejected an event");
                    return Some(Err(error));
                }
                Ok(()) => return Some(Ok(())),
            }
        }
        tracing::error!(reason = recorded.reason, "giving up on an event: the API server does not answer");
        None
    }
}

/// Returns the namespace of the event: `default` for cluster-scoped objects.
fn namespace_of(recorded: &RecordedEvent) -> &str {
    recorded.regarding.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or("default")
}
