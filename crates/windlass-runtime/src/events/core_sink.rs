//! Writes events of the API core/v1 in sequence.

use k8s_openapi::{
    api::core::v1::{Event, EventSource},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use serde_json::json;
use tokio::sync::mpsc;

use super::{
    RecordedEvent,
    correlator::{Correlator, Decision, Limits},
    dropped::DropCause,
    writer::{EventWriter, Written},
};

pub(super) struct CoreSink {
    writer: EventWriter,
    correlator: Correlator,
}

impl CoreSink {
    /// The path of the API.
    pub(super) const API: &'static str = "/api/v1";

    pub(super) fn new(writer: EventWriter) -> Self {
        Self { writer, correlator: Correlator::new(Limits::default()) }
    }

    /// Writes events until the queue is closed and empty.
    pub(super) async fn run(mut self, events: &mut mpsc::Receiver<RecordedEvent>) {
        while let Some(event) = events.recv().await {
            let now = self.writer.env.now();
            match self.correlator.correlate(&event, now) {
                Decision::Drop => self.writer.dropped.count(DropCause::RateLimited),
                Decision::Create { key, note } => self.create(&event, key, note).await,
                Decision::Count { key, name, note, count, first } => {
                    let patch = json!({ "count": count, "lastTimestamp": Time(now), "message": note });
                    match self.writer.patch(event.namespace(), &name, &event.reason, &patch).await {
                        Written::Yes => self.correlator.written(key, name, count, first),
                        Written::NotFound => {
                            self.correlator.forget(&key);
                            self.create(&event, key, note).await;
                        }
                        Written::No => {}
                    }
                }
            }
        }
    }

    async fn create(&mut self, recorded: &RecordedEvent, key: String, note: String) {
        let now = self.writer.env.now();
        let name = recorded.event_name(now, self.writer.env.random());
        let event = Event {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: Some(recorded.namespace().to_owned()),
                annotations: recorded.annotations(),
                ..ObjectMeta::default()
            },
            involved_object: recorded.regarding.clone(),
            related: recorded.related.clone(),
            action: recorded.action.clone(),
            type_: Some(recorded.kind.to_string()),
            reason: Some(recorded.reason.clone()),
            message: Some(note),
            count: Some(1),
            first_timestamp: Some(Time(now)),
            last_timestamp: Some(Time(now)),
            source: Some(EventSource { component: Some(recorded.component.to_string()), host: None }),
            reporting_component: Some(recorded.component.to_string()),
            ..Event::default()
        };
        if let Written::Yes = self.writer.create(recorded.namespace(), &recorded.reason, &event).await {
            self.correlator.written(key, name, 1, now);
        }
    }
}
