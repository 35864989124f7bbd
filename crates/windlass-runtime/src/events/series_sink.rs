//! Writes events of the API events.k8s.io/v1 in sequence.

use jiff::Timestamp;
use k8s_openapi::{
    api::events::v1::{Event, EventSeries},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use serde_json::json;
use tokio::{sync::mpsc, time::sleep};

use super::{
    RecordedEvent,
    series::{SeriesTracker, SeriesWrite},
    writer::{EventWriter, Written},
};

/// The API's limit for a note, in bytes.
const MAX_NOTE: usize = 1024;

/// The API's limit for `reportingInstance`, in bytes.
const MAX_INSTANCE: usize = 128;

pub(super) struct SeriesSink {
    writer: EventWriter,
    tracker: SeriesTracker,
    /// The name of this process, which is part of `reportingInstance`.
    host: String,
}

impl SeriesSink {
    /// The path of the API.
    pub(super) const API: &'static str = "/apis/events.k8s.io/v1";

    pub(super) fn new(writer: EventWriter, host: String) -> Self {
        Self { writer, tracker: SeriesTracker::default(), host }
    }

    /// Writes events until the queue is closed and empty.
    pub(super) async fn run(mut self, events: &mut mpsc::Receiver<RecordedEvent>) {
        loop {
            let now = self.writer.env.now();
            let wait = self.tracker.next_look(now);
            let event = tokio::select! {
                biased;
                event = events.recv() => event,
                () = async { sleep(wait.unwrap_or_default()).await }, if wait.is_some() => {
                    let writes = self.tracker.look_through(self.writer.env.now());
                    self.write(writes).await;
                    continue;
                }
            };
            let Some(event) = event else { break };
            let now = self.writer.env.now();
            let name = event.event_name(now, self.writer.env.random());
            let writes = self.tracker.record(event, name, now);
            self.write(writes).await;
        }
        let writes = self.tracker.finish();
        self.write(writes).await;
    }

    async fn write(&self, writes: Vec<SeriesWrite>) {
        for write in writes {
            match write {
                SeriesWrite::Create { name, event, time } => {
                    let body = self.event(&event, name, time, None);
                    self.writer.create(event.namespace(), &event.reason, &body).await;
                }
                SeriesWrite::Series { name, event, time, count, last } => {
                    let series = EventSeries { count, last_observed_time: MicroTime(last) };
                    let patch = json!({ "series": series });
                    let namespace = event.namespace();
                    if let Written::NotFound =
                        self.writer.patch(namespace, &name, &event.reason, &patch).await
                    {
                        let body = self.event(&event, name, time, Some(series));
                        self.writer.create(namespace, &event.reason, &body).await;
                    }
                }
            }
        }
    }

    fn event(
        &self,
        recorded: &RecordedEvent,
        name: String,
        time: Timestamp,
        series: Option<EventSeries>,
    ) -> Event {
        Event {
            metadata: ObjectMeta {
                name: Some(name),
                namespace: Some(recorded.namespace().to_owned()),
                annotations: recorded.annotations(),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(time)),
            series,
            reporting_controller: Some(recorded.component.to_string()),
            reporting_instance: Some(self.instance(&recorded.component)),
            // The API demands an action.
            action: Some(recorded.action.clone().unwrap_or_else(|| recorded.reason.clone())),
            reason: Some(recorded.reason.clone()),
            regarding: Some(recorded.regarding.clone()),
            related: recorded.related.clone(),
            note: Some(truncated(&recorded.note, MAX_NOTE).to_owned()),
            type_: Some(recorded.kind.to_string()),
            ..Event::default()
        }
    }

    fn instance(&self, component: &str) -> String {
        truncated(&format!("{component}-{}", self.host), MAX_INSTANCE).to_owned()
    }
}

/// Returns the first bytes of a text, and no part of a character.
fn truncated(text: &str, bytes: usize) -> &str {
    let end = (0..=text.len().min(bytes)).rfind(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}
