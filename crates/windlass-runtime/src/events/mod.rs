//! Events: the lines that `kubectl describe` shows below an object.
//!
//! A manager records events through the API server; controllers get a [`Recorder`] from their context. A
//! program without a manager sets up a [`Broadcaster`], like client-go's `record.EventBroadcaster`:
//!
//! ```no_run
//! # use k8s_openapi::api::core::v1::Pod;
//! # async fn example(client: kube_client::Client, pod: Pod) {
//! use std::time::Duration;
//!
//! use windlass_runtime::events::Broadcaster;
//!
//! let broadcaster = Broadcaster::new();
//! broadcaster.start_logging();
//! broadcaster.start_recording_to(client);
//! let recorder = broadcaster.recorder("pod-counter");
//! recorder.normal(&pod, "Counted", "the pod was counted");
//! broadcaster.shutdown(Duration::from_secs(2)).await;
//! # }
//! ```

mod broadcaster;
mod core_sink;
mod correlator;
mod dropped;
mod recorder;
mod series;
mod series_sink;
mod writer;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt, sync::Arc};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;

pub use self::{
    broadcaster::Broadcaster,
    recorder::{EventBuilder, Recorder},
};

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// Information only.
    Normal,
    /// The object may need attention.
    Warning,
}

impl fmt::Display for EventType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        })
    }
}

/// The API for writing events. With either API, the server shows the Events by both APIs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EventsApi {
    /// core/v1: equal events are counted, similar events combined, and events of an object rate-limited, like
    /// client-go's `tools/record`.
    #[default]
    CoreV1,
    /// events.k8s.io/v1: repeated events become a series, like client-go's `tools/events`. Events with
    /// different notes count as repeated, too: the first note stays. Needs RBAC permission for the API group
    /// `events.k8s.io`.
    EventsV1,
}

/// A recorded event, before the correlation.
#[doc(hidden)]
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEvent {
    /// The component that reports the event.
    pub component: Arc<str>,
    /// The object that the event is about.
    pub regarding: ObjectReference,
    /// A second object that the event is about.
    pub related: Option<ObjectReference>,
    /// The action that was taken or failed.
    pub action: Option<String>,
    /// The annotations of the event.
    pub annotations: BTreeMap<String, String>,
    /// The type of the event.
    pub kind: EventType,
    /// The reason, in upper camel case.
    pub reason: String,
    /// The message.
    pub note: String,
}

impl RecordedEvent {
    /// Returns the namespace of the Event: `default` for cluster-scoped objects.
    fn namespace(&self) -> &str {
        self.regarding.namespace.as_deref().filter(|namespace| !namespace.is_empty()).unwrap_or("default")
    }

    /// Returns the annotations of the Event; `None` without annotations.
    fn annotations(&self) -> Option<BTreeMap<String, String>> {
        Some(self.annotations.clone()).filter(|annotations| !annotations.is_empty())
    }

    /// Makes a name for the Event. `random` tells events of the same nanosecond apart.
    fn event_name(&self, now: Timestamp, random: u64) -> String {
        let name = self.regarding.name.as_deref().filter(|name| !name.is_empty()).unwrap_or("unknown");
        let nanoseconds = now.as_nanosecond();
        if !is_subdomain(name) {
            // As client-go: the names of some objects, such as roles, are no names of Events.
            return format!("event-{random:016x}.{nanoseconds:x}");
        }
        let suffix = format!(".{nanoseconds:x}{:04x}", random & 0xffff);
        // A name has 253 characters at most.
        let end = name.len().min(253 - suffix.len());
        format!("{}{suffix}", name[..end].trim_end_matches(['.', '-']))
    }

    /// Identifies the reporting component and the object.
    fn object_key(&self) -> String {
        format!("{}\u{1f}{}", self.component, reference_key(&self.regarding))
    }

    /// Identifies events that differ only in the note.
    fn group_key(&self) -> String {
        format!("{}\u{1f}{}\u{1f}{}", self.object_key(), self.kind, self.reason)
    }

    /// Identifies equal events of core/v1.
    fn full_key(&self) -> String {
        let field = self.regarding.field_path.as_deref().unwrap_or_default();
        format!("{}\u{1f}{field}\u{1f}{}", self.group_key(), self.note)
    }

    /// Identifies the events of a series of events.k8s.io/v1.
    fn series_key(&self) -> String {
        let field = self.regarding.field_path.as_deref().unwrap_or_default();
        let related = self.related.as_ref().map(reference_key).unwrap_or_default();
        let action = self.action.as_deref().unwrap_or_default();
        format!("{}\u{1f}{field}\u{1f}{related}\u{1f}{action}", self.group_key())
    }
}

/// Identifies an object, regardless of the resource version.
fn reference_key(object: &ObjectReference) -> String {
    let parts = [&object.kind, &object.namespace, &object.name, &object.uid, &object.api_version];
    parts.map(|part| part.as_deref().unwrap_or_default()).join("\u{1f}")
}

/// Returns whether a text is a DNS subdomain, as the API server demands of the name of an Event of `events.k8s.io`.
fn is_subdomain(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    text.split('.').all(|label| {
        !label.is_empty() && label.bytes().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
    })
}
