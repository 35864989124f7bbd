//! Events: what `kubectl describe` shows below an object.

mod correlator;
mod sink;

#[cfg(test)]
mod tests;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use k8s_openapi::api::core::v1::ObjectReference;
use kube_client::Client;
use kube_core::Resource;
use parking_lot::Mutex;
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, timeout_at},
};

use crate::env::Env;

/// Whether an event tells of the usual or of something to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventType {
    /// The usual.
    Normal,
    /// Something to look at.
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

/// Records events about objects. Cheap to clone.
///
/// Recording never waits: events are written in the background, and are dropped (and counted) when too many wait. As with
/// client-go, repeated events are counted instead of written again, similar ones are combined, and an object that has very many is
/// held back.
#[derive(Clone)]
pub struct Recorder {
    component: Arc<str>,
    queue: mpsc::Sender<Occurrence>,
    dropped: Arc<AtomicU64>,
    task: Arc<Mutex<Option<JoinHandle<()>>>>,
}

/// As many events wait to be written; client-go's figure.
const QUEUE: usize = 1000;

/// Something that happened to an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Occurrence {
    pub(crate) component: Arc<str>,
    pub(crate) regarding: ObjectReference,
    pub(crate) kind: EventType,
    pub(crate) reason: String,
    pub(crate) note: String,
}

impl Recorder {
    pub(crate) fn start(client: Client, env: Env) -> Self {
        let (queue, occurrences) = mpsc::channel(QUEUE);
        let task = tokio::spawn(sink::Sink::new(client, env).run(occurrences));
        Self {
            component: "windlass".into(),
            queue,
            dropped: Arc::default(),
            task: Arc::new(Mutex::new(Some(task))),
        }
    }

    /// The same under another component's name: who reports.
    pub fn named(&self, component: impl Into<Arc<str>>) -> Self {
        Self { component: component.into(), ..self.clone() }
    }

    /// Records an event of type `Normal`.
    pub fn normal<K>(&self, object: &K, reason: &str, note: impl Into<String>)
    where
        K: Resource<DynamicType = ()>,
    {
        self.event(EventType::Normal, reference(object), reason, note);
    }

    /// Records an event of type `Warning`.
    pub fn warning<K>(&self, object: &K, reason: &str, note: impl Into<String>)
    where
        K: Resource<DynamicType = ()>,
    {
        self.event(EventType::Warning, reference(object), reason, note);
    }

    /// Records an event about whatever `regarding` names.
    ///
    /// `reason` is a word in upper camel case, for programs; `note` is a sentence, for people.
    pub fn event(&self, kind: EventType, regarding: ObjectReference, reason: &str, note: impl Into<String>) {
        let component = self.component.clone();
        let occurrence =
            Occurrence { component, regarding, kind, reason: reason.to_owned(), note: note.into() };
        if self.queue.try_send(occurrence).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(reason, "too many events wait to be written, this one is dropped");
        }
    }

    /// How many events were dropped because too many waited.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Writes what waits, as long as there is time, and ends.
    pub(crate) async fn stop(&self, deadline: Option<Instant>) {
        let Some(mut task) = self.task.lock().take() else { return };
        // The sink ends when it has written what was recorded before this.
        let end = Occurrence {
            component: "".into(),
            regarding: ObjectReference::default(),
            kind: EventType::Normal,
            reason: String::new(),
            note: String::new(),
        };
        let wait = async {
            if self.queue.send(end).await.is_ok() {
                let _ = (&mut task).await;
            }
        };
        let deadline = deadline.unwrap_or_else(|| Instant::now() + std::time::Duration::from_secs(30));
        if timeout_at(deadline, wait).await.is_err() {
            task.abort();
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("component", &self.component).finish_non_exhaustive()
    }
}

/// A reference as events carry it, with the resourceVersion that was looked at.
fn reference<K: Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    ObjectReference { resource_version: object.meta().resource_version.clone(), ..object.object_ref(&()) }
}

impl Occurrence {
    fn is_end(&self) -> bool {
        self.reason.is_empty() && self.component.is_empty()
    }

    /// Who says it, of which object.
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

    /// And what sort of thing.
    fn group_key(&self) -> String {
        format!("{}\u{1f}{}\u{1f}{}", self.object_key(), self.kind, self.reason)
    }

    /// And in which words.
    fn full_key(&self) -> String {
        let field = self.regarding.field_path.as_deref().unwrap_or_default();
        format!("{}\u{1f}{field}\u{1f}{}", self.group_key(), self.note)
    }
}
