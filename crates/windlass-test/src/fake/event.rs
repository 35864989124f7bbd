//! Events that a reconciler recorded.

use std::fmt;

use k8s_openapi::api::core::v1::ObjectReference;

use windlass_runtime::{detached::RecordedEvent, events::EventType};

/// A recorded Event, before equal events are counted together.
///
/// Can be compared with the text of the Event: `Warning BackOff Pod default/a-0: the container exits`.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// The type.
    pub kind: EventType,
    /// The reason, in upper camel case.
    pub reason: String,
    /// The message.
    pub note: String,
    /// The object that the Event is about.
    pub regarding: ObjectReference,
    /// A second object that the Event is about.
    pub related: Option<ObjectReference>,
    /// The action, in upper camel case.
    pub action: Option<String>,
    /// The controller that recorded the Event.
    pub component: String,
}

impl From<&RecordedEvent> for Event {
    fn from(event: &RecordedEvent) -> Self {
        Self {
            kind: event.kind,
            reason: event.reason.clone(),
            note: event.note.clone(),
            regarding: event.regarding.clone(),
            related: event.related.clone(),
            action: event.action.clone(),
            component: event.component.to_string(),
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectReference { kind, namespace, name, .. } = &self.regarding;
        write!(f, "{} {} {} ", self.kind, self.reason, kind.as_deref().unwrap_or_default())?;
        if let Some(namespace) = namespace {
            write!(f, "{namespace}/")?;
        }
        write!(f, "{}: {}", name.as_deref().unwrap_or_default(), self.note)
    }
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl PartialEq<&str> for Event {
    fn eq(&self, line: &&str) -> bool {
        let own = self.to_string();
        own == **line
    }
}
