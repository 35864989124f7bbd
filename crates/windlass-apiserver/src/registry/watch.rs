//! Watches: a collection as a stream of events.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use futures::stream;
use http::{HeaderValue, Response, header};
use serde_json::json;
use tokio::time::{Instant, Sleep};

use super::Call;
use super::event::{Events, error_event};
use super::options::{self, ListOptions};
use super::reply::{SHARED, sent_metadata};
use crate::body::{Body, Messages};
use crate::resource::Resource;
use crate::respond::{self, object_bytes, write_partial_metadata};
use crate::route::Query;
use crate::state::State;
use crate::store::{Change, Event, Stored, Tail, Watched};
use crate::wire::{self, ApiError, FieldOperator, FieldRequirement, FieldSelector, Format, Representation};
use windlass_kinds::table::IncludeObject;

/// The interval of bookmarks.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// The time before the end at which a watch sends the last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);
/// The shortest duration, in seconds, of a watch without `timeoutSeconds`; the longest is twice as long.
const SHORTEST_WATCH: u64 = 1_800;
/// The largest number of events in a frame.
const BATCH: usize = 256;
/// The largest number of events in a frame whose objects a webhook converts: the watch waits for the calls at the
/// same time, as kube-apiserver does since 1.37.
const CONVERSIONS: usize = 10;
/// The largest number of initial objects in a frame.
const INITIAL_BATCH: usize = 64;
/// A frame with more bytes takes no further object: a client that does not read keeps a frame in memory.
const FRAME_BYTES: usize = 256 << 10;

pub(super) async fn watch(call: &Call<'_>) -> Result<Response<Body>, ApiError> {
    let negotiated = call.negotiate()?;
    let mut options = ListOptions::parse(&call.query, &call.resource, true)?;
    if !call.route.name.is_empty() {
        // The `/watch/` prefix with a name watches only that object.
        expect_name(&call.query, &call.route.name)?;
        options.selection = options.selection.or_name(&call.route.name);
    }
    let revision = options::revision(&options.resource_version).map_err(ApiError::unexplained)?;
    call.expect_namespace()?;
    let start = Instant::now();
    let lasts = options
        .timeout_seconds
        .unwrap_or_else(|| SHORTEST_WATCH + call.state.env.random_u64() % SHORTEST_WATCH);
    // A deadline beyond the clock's end is none worth keeping.
    let deadline = start + Duration::from_secs(lasts.min(10 * 365 * 86_400));
    let mut watcher = Watcher {
        state: Arc::clone(call.state),
        resource: Arc::clone(&call.resource),
        log: call.state.store.log(&call.resource.storage).watched(),
        namespace: (!call.route.namespace.is_empty()).then(|| call.route.namespace.clone()),
        options,
        format: negotiated.format,
        representation: negotiated.representation,
        drops_managed_fields: negotiated.drops_managed_fields,
        include: call.include_object()?,
        initial: VecDeque::new(),
        timer: Box::pin(tokio::time::sleep_until(start)),
        initial_end: None,
        cursor: 0,
        next_bookmark: start + BOOKMARK_EVERY,
        last_bookmark: deadline.checked_sub(LAST_BOOKMARK).filter(|at| *at > start),
        deadline,
        columns_sent: false,
        ready: VecDeque::new(),
        done: false,
    };
    watcher.begin(revision).await?;
    wire::expect_stream(negotiated)?;
    // Boxed, because the watcher moves with every frame.
    let frames = stream::unfold(Box::new(watcher), |mut watcher| async move {
        let frame = watcher.next().await?;
        Some((frame, watcher))
    });
    let mut response = Response::new(Body::stream(frames));
    let content_type = HeaderValue::from_static(negotiated.format.watch_content_type());
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response.extensions_mut().insert(Messages::Events);
    respond::warn(response.headers_mut(), &call.warnings);
    Ok(response)
}

/// A watch: a cursor in the log of a resource, and a selection.
struct Watcher {
    state: Arc<State>,
    resource: Arc<Resource>,
    log: Watched,
    namespace: Option<String>,
    options: ListOptions,
    format: Format,
    representation: Representation,
    drops_managed_fields: bool,
    /// The part of an object that the rows of a table carry.
    include: IncludeObject,
    /// The objects of the initial state that are not sent yet.
    initial: VecDeque<Arc<Stored>>,
    /// Fires at the next bookmark, or at the end.
    timer: Pin<Box<Sleep>>,
    /// The revision of the bookmark that ends the initial state.
    initial_end: Option<u64>,
    cursor: u64,
    next_bookmark: Instant,
    last_bookmark: Option<Instant>,
    deadline: Instant,
    /// True if a table has named the columns: only the first table does.
    columns_sent: bool,
    /// The frames to send before any other.
    ready: VecDeque<Bytes>,
    done: bool,
}

impl Watcher {
    /// Starts the watch with the present state, or after a revision.
    async fn begin(&mut self, revision: Option<u64>) -> Result<(), ApiError> {
        let wants_state = self.options.send_initial_events.unwrap_or(matches!(revision, None | Some(0)));
        if !wants_state {
            self.cursor = match revision {
                None | Some(0) => self.state.store.view().revision(),
                Some(revision) => revision,
            };
            return Ok(());
        }
        let view = super::get::not_older(&self.state, revision).await?;
        self.cursor = view.revision();
        let selection = &self.options.selection;
        let (id, namespace) = (&self.resource.storage, self.namespace.as_deref());
        if selection.reads_fields() && self.resource.is_converted_by_webhook() {
            // The webhook converts all objects in one call, instead of one by one below.
            let all = selection.candidates(&self.state.store, &view, id, namespace, None);
            let all = all.filter(|(key, stored)| selection.may_match(key, stored));
            self.resource.present(&all.map(|(_, stored)| Arc::clone(stored)).collect::<Vec<_>>()).await?;
        }
        for (key, stored) in selection.candidates(&self.state.store, &view, id, namespace, None) {
            selection.pause().await;
            if !selection.may_match(key, stored) {
                continue;
            }
            if selection.reads_fields() {
                let shown = self.resource.present_one(stored).await?;
                if !selection.matches(key, &shown) {
                    continue;
                }
            }
            self.initial.push_back(Arc::clone(stored));
        }
        if self.options.send_initial_events == Some(true) && self.options.bookmarks {
            self.initial_end = Some(view.revision());
        }
        Ok(())
    }

    /// Waits for the next frame; `None` when the watch ends.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(frame) = self.ready.pop_front() {
            return Some(frame);
        }
        if self.done {
            return None;
        }
        let since = self.resource.custom.as_ref().map_or(0, |custom| custom.since);
        if self.cursor < since {
            // As on kube-apiserver, a resource has no history from before the resource was served.
            return Some(self.fail(&ApiError::too_old_resource_version(self.cursor, since)));
        }
        if !self.initial.is_empty() {
            let batch = self.initial_batch();
            let shown = self.resource.present(&batch).await;
            let added =
                shown.map(|shown| shown.into_iter().map(|shown| ("ADDED", shown)).collect::<Vec<_>>());
            let frames = added.and_then(|added| self.several(&added));
            return self.send(frames);
        }
        if let Some(revision) = self.initial_end.take() {
            let bookmark = self.bookmark(revision, true);
            return Some(self.or_fail(bookmark));
        }
        let log = Arc::clone(self.log.log());
        let calls_webhook = self.resource.is_converted_by_webhook();
        loop {
            let changed = log.changed();
            // Read this revision before the log, so that a bookmark never overtakes an event.
            let published = self.state.store.published();
            match log.tail(self.cursor, if calls_webhook { CONVERSIONS } else { BATCH }) {
                Tail::Closed => return None,
                Tail::Expired(oldest) => {
                    return Some(self.fail(&ApiError::too_old_resource_version(self.cursor, oldest)));
                }
                Tail::Events(events) if !events.is_empty() => {
                    let (mut seen, mut size) = (Vec::with_capacity(events.len()), 0);
                    let converted = if calls_webhook {
                        join_all(events.iter().map(|event| self.seen(event))).await
                    } else {
                        Vec::new()
                    };
                    let mut converted = converted.into_iter();
                    for event in &events {
                        self.options.selection.pause().await;
                        let change = match converted.next() {
                            Some(change) => change,
                            None => self.seen(event).await,
                        };
                        match change {
                            Ok(change) => {
                                size += change.as_ref().map_or(0, |(_, shown)| shown.json().len());
                                seen.extend(change);
                            }
                            // The watch ends after the events before the error.
                            Err(_) if !seen.is_empty() => break,
                            Err(error) => return Some(self.fail(&error)),
                        }
                        self.cursor = event.rv;
                        if size > FRAME_BYTES {
                            break;
                        }
                    }
                    if !seen.is_empty() {
                        let frames = self.frames(&seen);
                        return self.send(frames);
                    }
                    continue;
                }
                Tail::Events(_) => self.cursor = self.cursor.max(published),
            }
            if self.resource.is_retired() {
                return None;
            }
            let bookmark_at =
                self.last_bookmark.map_or(self.next_bookmark, |last| self.next_bookmark.min(last));
            let wake_at = bookmark_at.min(self.deadline);
            if self.timer.deadline() != wake_at {
                self.timer.as_mut().reset(wake_at);
            }
            tokio::select! {
                biased;
                () = changed => {}
                () = self.timer.as_mut() => {
                    let now = Instant::now();
                    if now >= self.deadline {
                        return None;
                    }
                    self.next_bookmark = now + BOOKMARK_EVERY;
                    self.last_bookmark = self.last_bookmark.filter(|last| *last > now);
                    // A watch of a revision that is still to come stays silent: a bookmark would confirm a revision that
                    // this server never had.
                    if self.options.bookmarks && self.cursor <= published {
                        let bookmark = self.bookmark(self.cursor, false);
                        return Some(self.or_fail(bookmark));
                    }
                }
            }
        }
    }

    /// Takes the initial objects of the next frame.
    fn initial_batch(&mut self) -> Vec<Arc<Stored>> {
        let mut size = 0;
        let next = self.initial.iter().take(INITIAL_BATCH).take_while(|stored| {
            let is_taken = size <= FRAME_BYTES;
            size += stored.json().len();
            is_taken
        });
        let count = next.count();
        self.initial.drain(..count).collect()
    }

    /// Ends the watch with an error.
    fn fail(&mut self, error: &ApiError) -> Bytes {
        self.done = true;
        error_event(self.format, error)
    }

    /// Sends frames. Returns the first frame.
    fn send(&mut self, frames: Result<Vec<Bytes>, ApiError>) -> Option<Bytes> {
        let frames = frames.unwrap_or_else(|error| vec![self.fail(&error)]);
        self.ready.extend(frames);
        self.ready.pop_front()
    }

    fn or_fail(&mut self, frame: Result<Bytes, ApiError>) -> Bytes {
        frame.unwrap_or_else(|error| self.fail(&error))
    }

    /// Converts a selected object to the version of the watch.
    async fn selected(&self, key: &str, stored: &Arc<Stored>) -> Result<Option<Arc<Stored>>, ApiError> {
        let selection = &self.options.selection;
        if !selection.may_match(key, stored) {
            return Ok(None);
        }
        let shown = self.resource.present_one(stored).await?;
        Ok(selection.matches(key, &shown).then_some(shown))
    }

    /// Returns an event from the watch's point of view, if the watch sees the event: a modified object may
    /// enter or leave the selection.
    async fn seen(&self, event: &Event) -> Result<Option<(&'static str, Arc<Stored>)>, ApiError> {
        if let Some(namespace) = &self.namespace {
            let inside = event.key.strip_prefix(namespace.as_str()).is_some_and(|rest| rest.starts_with('/'));
            if !inside {
                return Ok(None);
            }
        }
        let everything = self.options.selection.is_everything();
        let is_deleted = event.change == Change::Deleted;
        let unreadable = |error| if is_deleted { ApiError::undecodable_deletion(error) } else { error };
        let was = match &event.old {
            Some(old) if everything => Some(Arc::clone(old)),
            Some(old) => self.selected(&event.key, old).await.map_err(unreadable)?,
            None => None,
        };
        if is_deleted {
            return match was {
                Some(_) => {
                    let shown = self.resource.present_one(&event.object).await;
                    Ok(Some(("DELETED", shown.map_err(unreadable)?)))
                }
                None => Ok(None),
            };
        }
        Ok(match (was, self.selected(&event.key, &event.object).await?) {
            (None, Some(shown)) => Some(("ADDED", shown)),
            (Some(_), Some(shown)) => Some(("MODIFIED", shown)),
            // The earlier object, at the revision of the change.
            (Some(was), None) => Some(("DELETED", Arc::new(was.at(event.rv)))),
            (None, None) => None,
        })
    }

    /// Serialises events in order. Whole objects are serialised once for all watches.
    fn frames(&mut self, seen: &[(&'static str, Arc<Stored>)]) -> Result<Vec<Bytes>, ApiError> {
        if self.representation != Representation::Object || self.drops_managed_fields {
            return self.several(seen);
        }
        let log = self.log.log();
        match (self.format, seen) {
            (Format::Protobuf, [(change, shown)]) => {
                log.message(change, shown, || self.one(change, shown)).map(|message| vec![message])
            }
            (Format::Protobuf, _) => {
                let mut out = Vec::new();
                for (change, shown) in seen {
                    let message = log.message(change, shown, || self.one(change, shown))?;
                    out.extend_from_slice(&message);
                }
                Ok(vec![out.into()])
            }
            (_, [(change, shown)]) if shown.json().len() < SHARED => {
                log.line(change, shown, || self.one(change, shown)).map(|line| vec![line])
            }
            _ => self.several(seen),
        }
    }

    /// Serialises an event with the whole object.
    fn one(&self, change: &str, shown: &Stored) -> Result<Bytes, ApiError> {
        let mut events = Events::with_room(self.format, shown.json().len() + 40);
        events.push(change, [shown.json(), &[]])?;
        Ok(events.into_bytes())
    }

    fn several(&mut self, seen: &[(&'static str, Arc<Stored>)]) -> Result<Vec<Bytes>, ApiError> {
        let copied = seen.iter().map(|(_, shown)| shown.json().len()).filter(|size| *size < SHARED);
        let size = copied.map(|size| size + 40).sum();
        let mut events = Events::with_room(self.format, size);
        for (change, shown) in seen {
            self.write(&mut events, change, shown)?;
        }
        Ok(events.into_frames())
    }

    fn write(&mut self, events: &mut Events, change: &str, shown: &Stored) -> Result<(), ApiError> {
        match self.representation {
            Representation::Object if self.drops_managed_fields => {
                events.share(change, shown.without_managed_fields(), shown.json())
            }
            Representation::Object => events.share(change, [shown.json(), &[]], shown.json()),
            Representation::PartialObjectMetadata(version) => {
                let metadata = self.resource.internal_form().metadata(shown.metadata());
                let metadata = sent_metadata(&metadata, self.drops_managed_fields);
                let mut object = Vec::with_capacity(metadata.len() + 128);
                write_partial_metadata(&metadata, version.api_version(), &mut object);
                events.push(change, [&object, &[]])
            }
            Representation::PartialObjectMetadataList(_) => {
                // No object is a list: the watch ends at the first event.
                self.done = true;
                Ok(())
            }
            Representation::Table(version) => {
                let value = match self.include {
                    IncludeObject::Object => shown.value(),
                    _ => self.resource.internal_form().object(shown.value()),
                };
                let table = crate::table::table(
                    &self.resource.table_kind(),
                    &self.state.env,
                    version,
                    self.include,
                    &[&value],
                    &value,
                    !self.columns_sent,
                );
                self.columns_sent = true;
                events.push(change, [&object_bytes(&table), &[]])
            }
        }
    }

    /// Returns a bookmark: an object of the kind with only these fields.
    fn bookmark(&mut self, revision: u64, end_of_initial_state: bool) -> Result<Bytes, ApiError> {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if end_of_initial_state {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let mut object = match self.representation {
            Representation::Object | Representation::Table(_) => self.resource.schema.zero().clone(),
            Representation::PartialObjectMetadata(_) => json!({}),
            Representation::PartialObjectMetadataList(_) => {
                self.done = true;
                return Ok(Bytes::new());
            }
        };
        let (kind, version) = match self.representation {
            Representation::PartialObjectMetadata(version) => {
                ("PartialObjectMetadata", version.api_version())
            }
            _ => (&*self.resource.kind, self.resource.api_version()),
        };
        object["kind"] = kind.into();
        object["apiVersion"] = version.into();
        object["metadata"] = metadata;
        match self.representation {
            Representation::Object => self.resource.strategy.defaults.complete_zero(&mut object),
            Representation::Table(version) => {
                let columns = !std::mem::replace(&mut self.columns_sent, true);
                let (kind, env, include) = (self.resource.table_kind(), &self.state.env, self.include);
                object = crate::table::table(&kind, env, version, include, &[&object], &object, columns);
            }
            _ => {}
        }
        let mut events = Events::with_room(self.format, 0);
        events.push("BOOKMARK", [&object_bytes(&object), &[]])?;
        Ok(events.into_bytes())
    }
}

/// Checks that a field selector beside a name in the path selects the name.
fn expect_name(query: &Query, name: &str) -> Result<(), ApiError> {
    let selector = FieldSelector::parse(query.text("fieldSelector"))?;
    let is_name = |requirement: &&FieldRequirement| {
        requirement.field == "metadata.name" && requirement.operator == FieldOperator::Equals
    };
    let selected = selector.requirements().iter().find(is_name);
    if selector.is_empty() || selected.is_some_and(|selected| selected.value == name) {
        return Ok(());
    }
    Err(ApiError::bad_request("fieldSelector metadata.name doesn't match requested name"))
}
