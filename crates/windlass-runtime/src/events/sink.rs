//! Writes events to the server, one after the other.

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
    Occurrence,
    correlator::{Correlator, Limits, Verdict},
};
use crate::{client::request, env::Env, error::Result};

/// client-go's figures.
const TRIES: u32 = 12;
const PAUSE: Duration = Duration::from_secs(10);

pub(super) struct Sink {
    client: Client,
    env: Env,
    correlator: Correlator,
}

impl Sink {
    pub(super) fn new(client: Client, env: Env) -> Self {
        Self { client, env, correlator: Correlator::new(Limits::default()) }
    }

    pub(super) async fn run(mut self, mut occurrences: mpsc::Receiver<Occurrence>) {
        while let Some(occurrence) = occurrences.recv().await {
            if occurrence.is_end() {
                return;
            }
            let now = self.env.now();
            match self.correlator.correlate(&occurrence, now) {
                Verdict::Drop => {}
                Verdict::Create { key, note } => self.create(&occurrence, key, note).await,
                Verdict::Count { key, name, note, count, first } => {
                    let patch = json!({ "count": count, "lastTimestamp": Time(now), "message": note });
                    match self.with_retries(&occurrence, || self.count(&occurrence, &name, &patch)).await {
                        Some(Ok(())) => self.correlator.written(key, name, count, first),
                        // The server forgets events after an hour: it is a first one again.
                        Some(Err(error)) if error.is_not_found() => {
                            self.correlator.forget(&key);
                            self.create(&occurrence, key, note).await;
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    async fn create(&mut self, occurrence: &Occurrence, key: String, note: String) {
        let now = self.env.now();
        let event = self.event(occurrence, note);
        let name = event.metadata.name.clone().unwrap_or_default();
        if let Some(Ok(())) = self.with_retries(occurrence, || self.post(&event)).await {
            self.correlator.written(key, name, 1, now);
        }
    }

    fn event(&self, occurrence: &Occurrence, note: String) -> Event {
        let now = self.env.now();
        let name = occurrence.regarding.name.as_deref().unwrap_or("unknown");
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}{:04x}", now.as_nanosecond(), self.env.random() & 0xffff)),
                namespace: Some(namespace_of(occurrence).to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: occurrence.regarding.clone(),
            type_: Some(occurrence.kind.to_string()),
            reason: Some(occurrence.reason.clone()),
            message: Some(note),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            source: Some(EventSource { component: Some(occurrence.component.to_string()), host: None }),
            reporting_component: Some(occurrence.component.to_string()),
            ..Event::default()
        }
    }

    async fn post(&self, event: &Event) -> Result<()> {
        let namespace = event.metadata.namespace.as_deref().unwrap_or("default");
        let request = Request::post(format!("/api/v1/namespaces/{namespace}/events"));
        request::exchange::<Value>(&self.client, request, "application/json", event).await.map(drop)
    }

    async fn count(&self, occurrence: &Occurrence, name: &str, patch: &Value) -> Result<()> {
        let request =
            Request::patch(format!("/api/v1/namespaces/{}/events/{name}", namespace_of(occurrence)));
        request::exchange::<Value>(&self.client, request, "application/merge-patch+json", patch)
            .await
            .map(drop)
    }

    /// Tries until the server has answered; `None` when it never did.
    async fn with_retries<F>(&self, occurrence: &Occurrence, write: impl Fn() -> F) -> Option<Result<()>>
    where
        F: Future<Output = Result<()>>,
    {
        for attempt in 0..TRIES {
            match write().await {
                Err(error) if error.is_transient() => {
                    tracing::debug!(%error, attempt, "writing an event failed, to be tried again");
                    // The first pause is random, so that many programs do not come back together.
                    let pause = if attempt == 0 { PAUSE.mul_f64(self.env.fraction()) } else { PAUSE };
                    sleep(pause).await;
                }
                Err(error) if error.is_not_found() => return Some(Err(error)),
                Err(error) => {
                    tracing::warn!(%error, reason = occurrence.reason, "the server rejected an event");
                    return Some(Err(error));
                }
                Ok(()) => return Some(Ok(())),
            }
        }
        tracing::error!(reason = occurrence.reason, "the server did not take an event, giving it up");
        None
    }
}

/// Events of objects without a namespace lie in `default`.
fn namespace_of(occurrence: &Occurrence) -> &str {
    occurrence.regarding.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or("default")
}
