//! GET of a collection as a stream of changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, Response, header};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::options::{self, ListOptions};
use crate::api::{Api, Call};
use crate::resource::Resource;
use crate::respond::{object_bytes, partial_metadata};
use crate::serve::Body;
use crate::store::{Change, Event, Log, Stored, Tail};
use crate::wire::table::IncludeObject;
use crate::wire::{ApiError, Representation, Target};

/// How often a quiet watch says how far it has come.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long before its end a watch says so once more.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// How long a watch lasts if the client does not say: this long to twice this long.
const SHORTEST_WATCH: u64 = 1_800;
/// Events rendered into one frame.
const BATCH: usize = 256;
/// Objects of the initial state rendered into one frame.
const INITIAL_BATCH: usize = 64;

pub(super) async fn watch(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let mut options = ListOptions::parse(&call.query, &call.resource, true)?;
    if !call.route.name.is_empty() {
        // The `/watch/` prefix with a name watches that one object.
        options.fields = crate::wire::FieldSelector::parse(&format!("metadata.name={}", call.route.name))?;
    }
    let representation = call.negotiate(Target::Watch)?.representation;
    let revision = options::revision(&options.resource_version).map_err(ApiError::unexplained)?;
    let start = Instant::now();
    let lasts = options
        .timeout_seconds
        .unwrap_or_else(|| SHORTEST_WATCH + call.api.env.random_u64() % SHORTEST_WATCH);
    // A deadline beyond the clock's end is none worth keeping.
    let deadline = start + Duration::from_secs(lasts.min(10 * 365 * 86_400));
    let mut watcher = Watcher {
        api: Arc::clone(call.api),
        resource: Arc::clone(&call.resource),
        log: call.api.store.log(&call.resource.storage),
        namespace: (!call.route.namespace.is_empty()).then(|| call.route.namespace.clone()),
        options,
        representation,
        include: call.include_object()?,
        initial: VecDeque::new(),
        initial_end: None,
        cursor: 0,
        next_bookmark: start + BOOKMARK_EVERY,
        last_bookmark: deadline.checked_sub(LAST_BOOKMARK).filter(|at| *at > start),
        deadline,
        columns_sent: false,
        done: false,
    };
    watcher.begin(revision).await?;
    let frames = stream::unfold(watcher, |mut watcher| async move {
        let frame = watcher.next().await?;
        Some((frame, watcher))
    });
    let mut response = Response::new(Body::stream(frames));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// One watch: a cursor into the log of its resource, and what it wants to see.
struct Watcher {
    api: Arc<Api>,
    resource: Arc<Resource>,
    log: Arc<Log>,
    namespace: Option<String>,
    options: ListOptions,
    representation: Representation,
    /// What rows carry, where it is a table.
    include: IncludeObject,
    /// Objects of the initial state that are still to be sent.
    initial: VecDeque<Arc<Stored>>,
    /// The revision to announce once they are.
    initial_end: Option<u64>,
    cursor: u64,
    next_bookmark: Instant,
    last_bookmark: Option<Instant>,
    deadline: Instant,
    /// Tables name their columns once.
    columns_sent: bool,
    done: bool,
}

impl Watcher {
    /// Decides where to start: with the present state, or after a revision.
    async fn begin(&mut self, revision: Option<u64>) -> Result<(), ApiError> {
        let wants_state = self.options.send_initial_events.unwrap_or(matches!(revision, None | Some(0)));
        if !wants_state {
            self.cursor = match revision {
                None | Some(0) => self.api.store.view().revision(),
                Some(revision) => revision,
            };
            return Ok(());
        }
        let view = super::get::not_older(&self.api, revision).await?;
        self.cursor = view.revision();
        self.initial = view
            .range(&self.resource.storage, self.namespace.as_deref())
            .map(|(_, stored)| Arc::clone(stored))
            .filter(|stored| self.matches(stored))
            .collect();
        if self.options.send_initial_events == Some(true) && self.options.bookmarks {
            self.initial_end = Some(view.revision());
        }
        Ok(())
    }

    /// The next frame, `None` when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        if self.done {
            return None;
        }
        if !self.initial.is_empty() {
            let mut out = Vec::new();
            for stored in self.initial.drain(..self.initial.len().min(INITIAL_BATCH)).collect::<Vec<_>>() {
                self.write(&mut out, "ADDED", &stored, stored.rv);
            }
            return Some(out.into());
        }
        if let Some(revision) = self.initial_end.take() {
            return Some(self.bookmark(revision, true));
        }
        let log = Arc::clone(&self.log);
        loop {
            let changed = log.changed();
            // Read this revision before the log, so that a bookmark never overtakes an event.
            let published = self.api.store.published();
            match log.tail(self.cursor, BATCH) {
                Tail::Closed => return None,
                Tail::Expired(oldest) => {
                    self.done = true;
                    let error = ApiError::too_old_resource_version(self.cursor, oldest);
                    return Some(error_event(&error));
                }
                Tail::Events(events) if !events.is_empty() => {
                    let mut out = Vec::new();
                    for event in &events {
                        self.render(&mut out, event);
                        self.cursor = event.rv;
                    }
                    if !out.is_empty() {
                        return Some(out.into());
                    }
                    continue;
                }
                Tail::Events(_) => self.cursor = self.cursor.max(published),
            }
            let bookmark_at = match self.last_bookmark {
                Some(last) => self.next_bookmark.min(last),
                None => self.next_bookmark,
            };
            tokio::select! {
                biased;
                () = changed => {}
                () = tokio::time::sleep_until(self.deadline) => return None,
                () = tokio::time::sleep_until(bookmark_at) => {
                    let now = Instant::now();
                    self.next_bookmark = now + BOOKMARK_EVERY;
                    self.last_bookmark = self.last_bookmark.filter(|last| *last > now);
                    // A watch of a revision that is still to come stays silent: a bookmark would confirm a revision that
                    // this server never had.
                    if self.options.bookmarks && self.cursor <= published {
                        return Some(self.bookmark(self.cursor, false));
                    }
                }
            }
        }
    }

    fn matches(&self, stored: &Stored) -> bool {
        self.options.selects_all()
            || self.options.matches(&self.resource, &self.resource.show_value_if_needed(stored))
    }

    /// Writes what a change means to this watch: an object may come into its selection, or leave it.
    fn render(&mut self, out: &mut Vec<u8>, event: &Event) {
        if let Some(namespace) = &self.namespace {
            let inside = event.key.strip_prefix(namespace.as_str()).is_some_and(|rest| rest.starts_with('/'));
            if !inside {
                return;
            }
        }
        let was = event.old.as_deref().is_some_and(|old| self.matches(old));
        if event.change == Change::Deleted {
            if was {
                self.write(out, "DELETED", &event.object, event.rv);
            }
            return;
        }
        match (was, self.matches(&event.object)) {
            (false, true) => self.write(out, "ADDED", &event.object, event.rv),
            (true, true) => self.write(out, "MODIFIED", &event.object, event.rv),
            (true, false) => {
                // The object as it was, at the revision of its leaving.
                if let Some(old) = &event.old {
                    let left = Stored::new(old.value.clone(), event.rv);
                    self.write(out, "DELETED", &left, event.rv);
                }
            }
            (false, false) => {}
        }
    }

    fn write(&mut self, out: &mut Vec<u8>, change: &str, stored: &Stored, _revision: u64) {
        let object = match self.representation {
            Representation::Object => self.resource.show(stored),
            Representation::PartialObjectMetadata(version) => {
                object_bytes(&partial_metadata(&self.resource.show_value(stored), version.api_version()))
            }
            Representation::Table(version) => {
                let value = self.resource.show_value(stored);
                let table = crate::table::table(
                    &self.resource,
                    &self.api.env,
                    version,
                    self.include,
                    &[&value],
                    &value,
                    !self.columns_sent,
                );
                self.columns_sent = true;
                object_bytes(&table)
            }
        };
        write_event(out, change, &object);
    }

    fn bookmark(&self, revision: u64, end_of_initial_state: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if end_of_initial_state {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let (kind, version) = match self.representation {
            Representation::Object => (self.resource.kind.clone(), self.resource.api_version()),
            Representation::PartialObjectMetadata(version) => {
                ("PartialObjectMetadata".to_owned(), version.api_version().to_owned())
            }
            Representation::Table(version) => ("Table".to_owned(), version.api_version().to_owned()),
        };
        let object: Value = match self.representation {
            Representation::Table(_) => json!({
                "kind": kind, "apiVersion": version, "metadata": {"resourceVersion": revision.to_string()},
                "columnDefinitions": [], "rows": [],
            }),
            _ => json!({"kind": kind, "apiVersion": version, "metadata": metadata}),
        };
        let mut out = Vec::new();
        write_event(&mut out, "BOOKMARK", &object_bytes(&object));
        out.into()
    }
}

fn write_event(out: &mut Vec<u8>, change: &str, object: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(change.as_bytes());
    out.extend_from_slice(b"\",\"object\":");
    out.extend_from_slice(object);
    out.extend_from_slice(b"}\n");
}

fn error_event(error: &ApiError) -> Bytes {
    let mut out = Vec::new();
    write_event(&mut out, "ERROR", &error.status().to_json());
    out.into()
}
