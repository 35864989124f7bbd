//! Records events about objects.

use std::{collections::BTreeMap, fmt, sync::Arc};

use k8s_openapi::api::core::v1::ObjectReference;

use super::{Broadcaster, EventType, RecordedEvent};
use crate::kind::{AsObject, Object};

/// Records events about objects. Cheap to clone.
///
/// Recording never blocks: events are written in the background, and an event is dropped (and counted) when
/// too many are queued. As in client-go, equal events are counted instead of written again, and with the API
/// core/v1, similar events are combined, and events of an object are rate-limited.
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
    pub fn normal<O, Form>(&self, object: &O, reason: &str, note: impl Into<String>)
    where
        O: AsObject<Form, Object: Object>,
    {
        self.about(object).normal(reason, note);
    }

    /// Records an event of type `Warning`.
    pub fn warning<O, Form>(&self, object: &O, reason: &str, note: impl Into<String>)
    where
        O: AsObject<Form, Object: Object>,
    {
        self.about(object).warning(reason, note);
    }

    /// Records an event about the object that `regarding` names.
    ///
    /// `reason` is a word in upper camel case, for programs; `note` is a sentence, for people. After the
    /// shut-down of the broadcaster, the event is dropped.
    pub fn event(&self, kind: EventType, regarding: ObjectReference, reason: &str, note: impl Into<String>) {
        self.about_reference(regarding).record(kind, reason, note);
    }

    /// Begins an event that has more than a reason and a note.
    ///
    /// ```
    /// # use k8s_openapi::api::core::v1::{Node, Pod};
    /// # use windlass_runtime::events::Recorder;
    /// fn report(recorder: &Recorder, pod: &Pod, node: &Node) {
    ///     recorder.about(pod).related(node).action("Binding").normal("Scheduled", "the pod runs on the node");
    /// }
    /// ```
    pub fn about<O, Form>(&self, object: &O) -> EventBuilder<'_>
    where
        O: AsObject<Form, Object: Object>,
    {
        self.about_reference(reference(object.as_object()))
    }

    /// Works like [`about`](Self::about), for an object that a reference names.
    pub fn about_reference(&self, regarding: ObjectReference) -> EventBuilder<'_> {
        EventBuilder { recorder: self, regarding, related: None, action: None, annotations: BTreeMap::new() }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("component", &self.component).finish_non_exhaustive()
    }
}

/// An event that is not recorded yet. [`Recorder::about`] makes a builder.
#[must_use = "an event is recorded by `normal` or `warning`"]
#[derive(Debug)]
pub struct EventBuilder<'a> {
    recorder: &'a Recorder,
    regarding: ObjectReference,
    related: Option<ObjectReference>,
    action: Option<String>,
    annotations: BTreeMap<String, String>,
}

impl EventBuilder<'_> {
    /// Names a related object, for example the node on which a pod was placed.
    pub fn related<O, Form>(self, object: &O) -> Self
    where
        O: AsObject<Form, Object: Object>,
    {
        self.related_reference(reference(object.as_object()))
    }

    /// Works like [`related`](Self::related), by a reference.
    pub fn related_reference(mut self, related: ObjectReference) -> Self {
        self.related = Some(related);
        self
    }

    /// Names the action, a word in upper camel case: `Binding`, for the reason `FailedScheduling`.
    ///
    /// Default: no action. Events of `events.k8s.io/v1` must have an action, and repeat the reason.
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = Some(action.into());
        self
    }

    /// Adds an annotation to the Event. Among equal events, the annotations of the first event are kept.
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// Records the event, of type `Normal`. `reason` is a word in upper camel case, for programs; `note` is a
    /// sentence, for people.
    pub fn normal(self, reason: &str, note: impl Into<String>) {
        self.record(EventType::Normal, reason, note);
    }

    /// Records the event, of type `Warning`. `reason` is a word in upper camel case, for programs; `note` is
    /// a sentence, for people.
    pub fn warning(self, reason: &str, note: impl Into<String>) {
        self.record(EventType::Warning, reason, note);
    }

    fn record(self, kind: EventType, reason: &str, note: impl Into<String>) {
        self.recorder.broadcaster.broadcast(RecordedEvent {
            component: self.recorder.component.clone(),
            regarding: self.regarding,
            related: self.related,
            action: self.action,
            annotations: self.annotations,
            kind,
            reason: reason.to_owned(),
            note: note.into(),
        });
    }
}

/// Returns an event's reference to an object, with the resource version that the reporter saw.
fn reference<K: Object>(object: &K) -> ObjectReference {
    let (types, meta) = (object.type_meta().unwrap_or_default(), object.meta());
    ObjectReference {
        api_version: Some(types.api_version),
        kind: Some(types.kind),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        resource_version: meta.resource_version.clone(),
        ..ObjectReference::default()
    }
}
