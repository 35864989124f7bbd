//! Events: what `kubectl describe` shows below an object.
//!
//! A manager records events through the API server; controllers get a [`Recorder`] from their context. A program without a
//! manager sets up a [`Broadcaster`], as with client-go's `record.EventBroadcaster`:
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

mod api_sink;
mod broadcaster;
mod correlator;
mod recorder;

#[cfg(test)]
mod tests;

use std::{fmt, sync::Arc};

use k8s_openapi::api::core::v1::ObjectReference;

pub use self::{broadcaster::Broadcaster, recorder::Recorder};

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// Information only.
    Normal,
    /// Something may need attention.
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

/// An event as a recorder reported it, before correlation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RecordedEvent {
    pub(crate) component: Arc<str>,
    pub(crate) regarding: ObjectReference,
    pub(crate) kind: EventType,
    pub(crate) reason: String,
    pub(crate) note: String,
}

impl RecordedEvent {
    /// Identifies the reporting component and the object.
    fn object_key(&self) -> String {
        let part = |text: &Option<String>| text.clone().unwrap_or_default();
        let r = &self.regarding;
        let parts = [
            self.component.to_string(),
            part(&r.kind),
            part(&r.namespace),
            part(&r.name),
            part(&r.uid),
            part(&r.api_version),
        ];
        parts.join("\u{1f}")
    }

    /// Identifies events that differ only in their note.
    fn group_key(&self) -> String {
        format!("{}\u{1f}{}\u{1f}{}", self.object_key(), self.kind, self.reason)
    }

    /// Identifies equal events.
    fn full_key(&self) -> String {
        let field = self.regarding.field_path.as_deref().unwrap_or_default();
        format!("{}\u{1f}{field}\u{1f}{}", self.group_key(), self.note)
    }
}
