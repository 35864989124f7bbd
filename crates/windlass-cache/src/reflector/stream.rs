//! The bodies of lists and watches.

use std::time::{Duration, Instant};

use bytes::Bytes;

use super::{
    Plan, Reflector, ReflectorEvent, ReflectorStore, RequestState, WatchListSupport,
    error::{ErrorStatus, WatchError, WatchErrorKind},
};
use crate::{
    frame::{ListFramer, ListMeta, UnreadableObject, WatchEvent, WatchFramer},
    scan::WatchEventType,
};

/// The body of the current response.
#[derive(Debug)]
pub(super) enum Stream {
    List {
        framer: ListFramer,
    },
    Watch {
        framer: WatchFramer,
        /// The existing objects are still being sent.
        initial: bool,
        /// The newest resource version of the watch, at first the version at which the watch began. Zero if
        /// unknown.
        seen: u64,
        /// The watch has sent an event.
        useful: bool,
    },
    /// A list that is read for its resource version only.
    Verify {
        framer: ListFramer,
    },
}

/// The reason of a relist when the server has another history.
const WENT_BACK: &str = "the server's resourceVersion went back: it was replaced or restored";

/// The continuation of a body.
enum Flow {
    Continue,
    /// The next request has been planned.
    Stop,
}

impl Stream {
    pub(super) fn new(plan: &Plan, limit: usize) -> Self {
        let framer = || WatchFramer::new(limit);
        match plan {
            Plan::List { .. } => Self::List { framer: ListFramer::new(limit) },
            Plan::WatchList => Self::Watch { framer: framer(), initial: true, seen: 0, useful: false },
            Plan::Watch { version } => {
                let seen = version.parse().unwrap_or_default();
                Self::Watch { framer: framer(), initial: false, seen, useful: false }
            }
            Plan::Verify { .. } => Self::Verify { framer: ListFramer::new(limit) },
        }
    }
}

impl Reflector {
    pub(super) fn stream_bytes(
        &mut self,
        now: Instant,
        mut stream: Box<Stream>,
        since: Instant,
        piece: Bytes,
        store: &mut impl ReflectorStore,
    ) {
        let flow = match &mut *stream {
            Stream::List { framer } => {
                framer.push(piece);
                self.list_items(now, framer, store)
            }
            Stream::Watch { framer, initial, seen, useful } => {
                framer.push(piece);
                self.watch_events(now, framer, (initial, seen, useful), store)
            }
            Stream::Verify { framer } => {
                framer.push(piece);
                self.pass_items(now, framer, store)
            }
        };
        store.shared_memory(self.scanner.shared_memory());
        if let Flow::Continue = flow {
            self.request = RequestState::Streaming { until: self.deadline(now, &stream), stream, since };
        }
    }

    fn list_items(&mut self, now: Instant, framer: &mut ListFramer, store: &mut impl ReflectorStore) -> Flow {
        loop {
            match framer.next(&mut self.scanner) {
                Ok(Some(Ok(object))) => {
                    if let Err(error) = store.upsert(object) {
                        unreadable(&self.config.resource, UnreadableObject { key: None, error }, true, store);
                    }
                }
                Ok(Some(Err(bad))) => unreadable(&self.config.resource, bad, true, store),
                Ok(None) => return Flow::Continue,
                Err(error) => {
                    self.failed(now, WatchErrorKind::Corrupt(error), None, store);
                    return Flow::Stop;
                }
            }
        }
    }

    /// Ignores the items of a list.
    fn pass_items(&mut self, now: Instant, framer: &mut ListFramer, store: &mut impl ReflectorStore) -> Flow {
        loop {
            match framer.next(&mut self.scanner) {
                Ok(Some(_)) => {}
                Ok(None) => return Flow::Continue,
                Err(error) => {
                    self.failed(now, WatchErrorKind::Corrupt(error), None, store);
                    return Flow::Stop;
                }
            }
        }
    }

    fn watch_events(
        &mut self,
        now: Instant,
        framer: &mut WatchFramer,
        (initial, seen, useful): (&mut bool, &mut u64, &mut bool),
        store: &mut impl ReflectorStore,
    ) -> Flow {
        // The resource version is recorded once for each piece, because only the end of a watch needs the
        // version.
        let mut version = String::new();
        loop {
            let WatchEvent { event, object } = match framer.next(&mut self.scanner) {
                None => break,
                Some(Ok(event)) => event,
                Some(Err(bad)) => {
                    unreadable(&self.config.resource, bad, *initial, store);
                    continue;
                }
            };
            if event == WatchEventType::Error {
                let status = ErrorStatus::read(0, object.source());
                self.record_version(&version, *initial, store);
                self.refused(now, status, None, store);
                return Flow::Stop;
            }
            let shown = object.resource_version();
            let revision = shown.parse::<u64>().ok();
            let went_back = !*initial && revision.is_some_and(|revision| revision < *seen);
            if went_back && event != WatchEventType::Bookmark {
                self.relist(now, WENT_BACK, store);
                return Flow::Stop;
            }
            if went_back && !self.lagging {
                // The server was replaced, or a replica lags behind the watch.
                self.record_version(&version, *initial, store);
                self.lagging = true;
                self.verify();
                return Flow::Stop;
            }
            if !shown.is_empty() && !went_back {
                shown.clone_into(&mut version);
                *seen = revision.unwrap_or(*seen);
                self.lagging = false;
            }
            let applied = match event {
                WatchEventType::Added | WatchEventType::Modified => store.upsert(object),
                WatchEventType::Deleted => store.delete(object),
                WatchEventType::Bookmark if *initial => {
                    if object.annotation("k8s.io/initial-events-end").as_deref() != Some("true") {
                        self.fall_back(now, WatchListSupport::Refused, store);
                        return Flow::Stop;
                    }
                    *initial = false;
                    store.end_list();
                    self.note_listed(now);
                    self.succeeded(store);
                    Ok(())
                }
                WatchEventType::Bookmark => {
                    self.bookmarks = true;
                    Ok(())
                }
                WatchEventType::Error | WatchEventType::Unknown => Ok(()),
            };
            if let Err(error) = applied {
                unreadable(&self.config.resource, UnreadableObject { key: None, error }, *initial, store);
            }
            if !*initial && !*useful {
                *useful = true;
                self.succeeded(store);
            }
        }
        self.record_version(&version, *initial, store);
        Flow::Continue
    }

    /// Records the resource version at which the watch resumes. The initial objects have no order: these
    /// versions do not count.
    fn record_version(&mut self, version: &str, initial: bool, store: &mut impl ReflectorStore) {
        if !version.is_empty() && !initial {
            store.progress(version);
            self.plan = Plan::Watch { version: version.to_owned() };
        }
    }

    /// Notes the end of a list: the time that a relist takes is not a time in which a watch works.
    fn note_listed(&mut self, now: Instant) {
        if let Some(relisted) = &mut self.relisted {
            *relisted = now;
        }
    }

    fn succeeded(&mut self, store: &mut impl ReflectorStore) {
        if self.backoff.reset() {
            store.notice(ReflectorEvent::Recovered);
        }
        self.paged = true;
        (self.too_large, self.corrupt) = (0, 0);
    }

    pub(super) fn stream_ended(
        &mut self,
        now: Instant,
        stream: Stream,
        since: Instant,
        broken: Option<&str>,
        store: &mut impl ReflectorStore,
    ) {
        match stream {
            Stream::List { framer } => self.list_ended(now, framer, broken, store),
            Stream::Verify { framer } => self.compare_versions(now, framer, broken, store),
            Stream::Watch { framer, initial, useful, .. } => {
                let within = framer.is_within_event();
                if within {
                    self.corrupt += 1;
                }
                if self.corrupt >= 2 {
                    return self.relist(now, "the watch broke off within an event twice", store);
                }
                let short = !useful && now.saturating_duration_since(since) < Duration::from_secs(1);
                if within || initial || short {
                    let ended =
                        if within || initial { WatchErrorKind::Truncated } else { WatchErrorKind::Short };
                    let error = broken.map_or(ended, |reason| WatchErrorKind::Unreachable(reason.to_owned()));
                    self.failed(now, error, None, store);
                } else if broken.is_some() {
                    self.verify();
                }
                // Otherwise the watch has ended in the ordinary way and resumes at once.
            }
        }
    }

    /// Compares the resource version of the server with that of the watch.
    fn compare_versions(
        &mut self,
        now: Instant,
        framer: ListFramer,
        broken: Option<&str>,
        store: &mut impl ReflectorStore,
    ) {
        let Some(meta) = self.finish_list(now, framer, broken, store) else { return };
        let Plan::Verify { version } = &mut self.plan else { return };
        let (own, server) = (version.parse::<u64>(), meta.resource_version.parse::<u64>());
        if own.is_ok_and(|own| server.is_ok_and(|server| server < own)) {
            return self.relist(now, WENT_BACK, store);
        }
        self.plan = Plan::Watch { version: std::mem::take(version) };
    }

    /// Returns the metadata of a list whose body has ended. Fails the request if the body is incomplete.
    fn finish_list(
        &mut self,
        now: Instant,
        framer: ListFramer,
        broken: Option<&str>,
        store: &mut impl ReflectorStore,
    ) -> Option<ListMeta> {
        let metadata = framer.finish().ok();
        if metadata.is_none() {
            let error = broken
                .map_or(WatchErrorKind::Truncated, |reason| WatchErrorKind::Unreachable(reason.to_owned()));
            self.failed(now, error, None, store);
        }
        metadata
    }

    fn list_ended(
        &mut self,
        now: Instant,
        framer: ListFramer,
        broken: Option<&str>,
        store: &mut impl ReflectorStore,
    ) {
        let Some(meta) = self.finish_list(now, framer, broken, store) else { return };
        if !meta.continue_token.is_empty() {
            self.plan = Plan::List { token: Some(meta.continue_token) };
            return;
        }
        store.end_list();
        if !meta.resource_version.is_empty() {
            store.progress(&meta.resource_version);
        }
        self.note_listed(now);
        self.succeeded(store);
        self.plan = Plan::Watch { version: meta.resource_version };
    }
}

/// Reports an object that could not be read. The store must keep an unreadable object of a list.
fn unreadable(resource: &str, bad: UnreadableObject, listing: bool, store: &mut impl ReflectorStore) {
    if listing {
        store.unreadable(bad.key.as_ref());
    }
    let resource = resource.to_owned();
    store.notice(ReflectorEvent::Unreadable(WatchError {
        resource,
        kind: WatchErrorKind::UnreadableObject(bad),
    }));
}
