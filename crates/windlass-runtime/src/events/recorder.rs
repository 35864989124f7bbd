//! Records events about objects.

use std::{fmt, sync::Arc};

use k8s_openapi::api::core::v1::ObjectReference;

use super::{Broadcaster, EventType, RecordedEvent};
use crate::kind::Object;

/// Records events about objects. Cheap to clone.
///
/// Recording never blocks: events are written in the background, and an event is dropped (and counted) when too many are
/// queued. As in client-go, equal events are counted instead of written again, similar events are combined, and events of
/// one object are rate-limited.
#[derive(Clone)]
pub struct Recorder {
    component: Arc<str>,
    broadcaster: Broadcaster,
}

impl Recorder {
    pub(super) fn new(component: Arc<str>, broadcaster: Broadcaster) -> Self {
        Self { component, broadcaster }
    }

    /// Returns a recorder that reports as `component`.
    pub fn named(&self, component: impl Into<Arc<str>>) -> Self {
        Self { component: component.into(), ..self.clone() }
    }

    /// Records an event of type `Normal`.
    pub fn normal<K: Object>(&self, object: &K, reason: &str, note: impl Into<String>) {
        self.event(EventType::Normal, reference(object), reason, note);
    }

    /// Records an event of type `Warning`.
    pub fn warning<K: Object>(&self, object: &K, reason: &str, note: impl Into<String>) {
        self.event(EventType::Warning, reference(object), reason, note);
    }

    /// Records an event about the object that `regarding` names.
    ///
    /// `reason` is one word in upper camel case, for programs; `note` is a sentence, for people. Does nothing after the
    /// broadcaster has shut down.
    pub fn event(&self, kind: EventType, regarding: ObjectReference, reason: &str, note: impl Into<String>) {
        self.broadcaster.broadcast(RecordedEvent {
            component: self.component.clone(),
            regarding,
            kind,
            reason: reason.to_owned(),
            note: note.into(),
        });
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("component", &self.component).finish_non_exhaustive()
    }
}

/// Returns an event's reference to an object, with the resource version that the reporter saw.
fn reference<K: Object>(object: &K) -> ObjectReference {
    let (types, meta) = (object.type_meta().unwrap_or_default(), object.meta().clone());
    ObjectReference {
        api_version: Some(types.api_version),
        kind: Some(types.kind),
        name: meta.name,
        namespace: meta.namespace,
        uid: meta.uid,
        resource_version: meta.resource_version,
        ..ObjectReference::default()
    }
}
