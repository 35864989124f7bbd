//! The reflector: a state machine over list and watch that keeps a store equal to a collection of the server.
//!
//! A reflector does no I/O and reads no clock. A driver calls [`Reflector::poll`] for the next step, sends
//! the requests and hands in the responses. The resulting changes of objects go to a [`ReflectorStore`].
//!
//! # Resuming a watch
//! A watch that ends resumes at the newest resource version of the watch. A server that was replaced, or
//! restored from a backup, may accept a future resource version and then send nothing. Therefore:
//!
//! - After a failed connection (no response, a body that breaks off or is silent, a response 502, 503 or 504)
//!   the reflector first sends a list with `limit=1`. Such a list is consistent: no replica responds with an
//!   older state. If the list has a lower resource version than the watch, the server has another history,
//!   and everything is listed again. Otherwise the watch resumes. If the server forbids lists (403), the
//!   watch resumes without the comparison.
//! - A bookmark with a lower resource version than an earlier bookmark may come from a lagging replica. The
//!   same list decides. If the history is the same, lower bookmarks are ignored until the replica has caught
//!   up.
//! - An event with a lower resource version than an earlier event leads to a relist at once, because no
//!   server sends such an event for a watch that begins later.
//! - A response 404 means that the kind was deleted. Everything is listed again when the server has the kind.
//! - A response 410 means that the server no longer has the resource version. Everything is listed again.
//!
//! Resource versions that are not numbers are not compared. A watch that the server ends in the ordinary way resumes without a
//! list.

mod backoff;
mod config;
mod error;
mod request;
mod stream;

pub use self::{
    config::{BackoffConfig, ReflectorConfig},
    error::WatchError,
    request::ListWatch,
};

use std::time::{Duration, Instant};

use bytes::Bytes;

use self::{
    backoff::Backoff,
    error::{ErrorStatus, WatchErrorKind},
    stream::Stream,
};
use crate::{
    ObjectKey,
    scan::{ScanError, ScanOptions},
    scanner::{Scanned, Scanner},
};

/// The next step of the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReflectorAction {
    /// Cancel the current request, if any, and send this request.
    Send(ListWatch),
    /// Hand in the response of the current request, and poll again at this time at the latest.
    Receive {
        /// When to poll again.
        until: Instant,
    },
    /// Cancel the current request, if any, and poll again at this time.
    Sleep {
        /// When to poll again.
        until: Instant,
    },
}

/// Receives the changes of the collection.
pub trait ReflectorStore {
    /// Begins a list. At the end of the list, objects that the list has not shown are deleted.
    fn begin_list(&mut self);
    /// Adds or updates an object.
    fn upsert(&mut self, object: Scanned<'_>) -> Result<(), ScanError>;
    /// Deletes an object. `object` is the last state.
    fn delete(&mut self, object: Scanned<'_>) -> Result<(), ScanError>;
    /// Reports an object of the list that could not be read. Without a key, the object may be any object.
    fn unreadable(&mut self, key: Option<&ObjectKey>);
    /// Ends the list.
    fn end_list(&mut self);
    /// Reports that everything up to this resource version has been seen. The version is lower than before if
    /// the server was replaced.
    fn progress(&mut self, resource_version: &str);
    /// Passes a notice to operators.
    fn notice(&mut self, notice: ReflectorEvent);
    /// Reports the bytes of the text that the objects of this watch share.
    fn shared_memory(&mut self, bytes: usize) {
        let _ = bytes;
    }
}

/// A notice for operators: for logs and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReflectorEvent {
    /// A list or watch failed. The reflector retries after a delay.
    Failed {
        /// Why.
        error: WatchError,
        /// The delay before the next attempt.
        retry_in: Duration,
    },
    /// The watch works again after failures.
    Recovered,
    /// An object could not be read. The watch continues, and the cache keeps the last readable state.
    Unreadable(WatchError),
    /// An index function panicked: the object has no value in the index. Reported once for each index and change.
    IndexPanicked {
        /// The name of the index.
        index: String,
        /// The object of the first panic.
        object: ObjectKey,
    },
    /// The server does not support watches that begin with the objects (`sendInitialEvents`). Lists are used instead.
    WatchListUnsupported,
    /// The watch cannot resume. Everything is listed again.
    Relisting {
        /// Why.
        reason: &'static str,
    },
}

/// The next request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Plan {
    /// A watch that begins with the objects.
    WatchList,
    /// A page of a list.
    List { token: Option<String> },
    /// A watch from a resource version.
    Watch { version: String },
    /// A list of a single object. The resource version of the list shows whether the server still has the
    /// history that `version` belongs to.
    Verify { version: String },
}

/// The server's support for watches that begin with the objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchListSupport {
    /// The server supports such watches, or has not been asked yet.
    Assumed,
    /// The server was silent after the initial events; the reflector tries again after this time.
    Silent { retry_at: Instant },
    /// The server refused such watches, or the configuration disables such watches.
    Refused,
}

#[derive(Debug)]
enum RequestState {
    /// The request is sent at this time.
    Planned { at: Instant },
    /// The request was sent.
    Sent { until: Instant },
    /// The response is an error; `body` has arrived so far.
    Refused { until: Instant, code: u16, retry_after: Option<Duration>, body: Vec<u8> },
    /// The body of the response is arriving.
    Streaming { until: Instant, stream: Box<Stream>, since: Instant },
}

/// Keeps a [`ReflectorStore`] equal to a collection of the server.
#[derive(Debug)]
pub struct Reflector {
    config: ReflectorConfig,
    scanner: Scanner,
    backoff: Backoff,
    plan: Plan,
    request: RequestState,
    watch_list: WatchListSupport,
    /// Lists are paged. Switched off from the expiry of a continue token to the next complete list.
    paged: bool,
    /// The server has sent a bookmark.
    bookmarks: bool,
    /// A lagging replica has sent a bookmark older than the watch.
    lagging: bool,
    /// The number of consecutive responses that the server does not have the resource version yet.
    too_large: u32,
    /// The number of consecutive watches that ended within an event.
    corrupt: u32,
    /// The time of the last relist: at first the begin, after the delay, and then the end.
    relisted: Option<Instant>,
    /// The delays of relists. A list that succeeds resets the delays of failures only: the next watch may expire again.
    relists: Backoff,
    limit: usize,
}

/// A watch that has been open for this long works, even if the watch has shown neither an event nor a bookmark.
const WORKS_AFTER: Duration = Duration::from_secs(10);
/// The maximum bytes of an error's body that are read.
const ERROR_BODY: usize = 64 << 10;
/// The maximum `Retry-After` that is respected, so that no server can silence a watch for long.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(2);

impl Reflector {
    /// Creates a reflector that sends the first request at once.
    pub fn new(config: ReflectorConfig, options: &ScanOptions, now: Instant) -> Self {
        let config = config.bounded();
        let backoff = Backoff::new(config.backoff.clone(), config.seed);
        let relists = Backoff::new(config.backoff.clone(), !config.seed);
        let mut reflector = Self {
            scanner: Scanner::new(options),
            backoff,
            plan: Plan::WatchList,
            request: RequestState::Planned { at: now },
            watch_list: if config.watch_list { WatchListSupport::Assumed } else { WatchListSupport::Refused },
            lagging: false,
            paged: true,
            bookmarks: false,
            too_large: 0,
            corrupt: 0,
            relisted: None,
            relists,
            limit: options.max_object_size,
            config,
        };
        reflector.plan = reflector.list_plan(now);
        reflector
    }

    /// Returns whether a list has ended, and the reflector follows the changes since that list.
    pub fn has_listed(&self) -> bool {
        matches!(self.plan, Plan::Watch { .. } | Plan::Verify { .. })
    }

    /// Returns the next step of the driver.
    pub fn poll(&mut self, now: Instant, store: &mut impl ReflectorStore) -> ReflectorAction {
        self.look_at_quiet_watch(now, store);
        match &self.request {
            RequestState::Planned { at } if now < *at => return ReflectorAction::Sleep { until: *at },
            RequestState::Planned { .. } => return ReflectorAction::Send(self.send(now)),
            RequestState::Sent { until }
            | RequestState::Refused { until, .. }
            | RequestState::Streaming { until, .. } => {
                if now < *until {
                    let until = self.works_at().map_or(*until, |at| at.min(*until));
                    return ReflectorAction::Receive { until };
                }
            }
        }
        self.time_out(now, store);
        self.poll_planned(now)
    }

    /// Returns when a quiet watch works, if the attempt before failed.
    fn works_at(&self) -> Option<Instant> {
        match &self.request {
            RequestState::Streaming { stream, since, .. } if self.backoff.has_failed() => {
                matches!(**stream, Stream::Watch { initial: false, useful: false, .. })
                    .then(|| *since + WORKS_AFTER)
            }
            _ => None,
        }
    }

    /// Notes that a watch works without an event. Bookmarks are not certain: an extension server may send none, and a proxy may end an idle
    /// watch before the first bookmark.
    fn look_at_quiet_watch(&mut self, now: Instant, store: &mut impl ReflectorStore) {
        if self.works_at().is_some_and(|at| now >= at) && self.backoff.reset() {
            store.notice(ReflectorEvent::Recovered);
        }
    }

    fn poll_planned(&mut self, now: Instant) -> ReflectorAction {
        match self.request {
            RequestState::Planned { at } if now < at => ReflectorAction::Sleep { until: at },
            _ => ReflectorAction::Send(self.send(now)),
        }
    }

    fn send(&mut self, now: Instant) -> ListWatch {
        self.request = RequestState::Sent { until: now + self.config.response_timeout };
        let timeout = self.config.watch_timeout;
        let timeout = self.backoff.jitter(timeout, timeout / 10).as_secs();
        let limit = (self.paged && self.config.page_size > 0).then_some(self.config.page_size);
        let watch = ListWatch { watch: true, timeout_seconds: Some(timeout), ..ListWatch::default() };
        match &self.plan {
            Plan::WatchList => ListWatch { send_initial_events: true, ..watch },
            Plan::List { token } => {
                ListWatch { limit, continue_token: token.clone(), ..ListWatch::default() }
            }
            Plan::Watch { version } => ListWatch { resource_version: Some(version.clone()), ..watch },
            Plan::Verify { .. } => ListWatch { limit: Some(1), ..ListWatch::default() },
        }
    }

    /// Handles the head of the response. `retry_after` is the header of that name.
    pub fn on_response(
        &mut self,
        now: Instant,
        code: u16,
        retry_after: Option<Duration>,
        store: &mut impl ReflectorStore,
    ) {
        let until = now + self.config.quiet_timeout;
        if !(200..300).contains(&code) {
            self.request = RequestState::Refused { until, code, retry_after, body: Vec::new() };
            return;
        }
        if self.plan == Plan::WatchList || self.plan == (Plan::List { token: None }) {
            store.begin_list();
        }
        let stream = Stream::new(&self.plan, self.limit);
        self.request = RequestState::Streaming {
            until: self.deadline(now, &stream),
            stream: Box::new(stream),
            since: now,
        };
    }

    /// Handles a piece of the response's body.
    pub fn on_bytes(&mut self, now: Instant, piece: Bytes, store: &mut impl ReflectorStore) {
        match std::mem::replace(&mut self.request, RequestState::Planned { at: now }) {
            RequestState::Refused { until, code, retry_after, mut body } => {
                let room = ERROR_BODY.saturating_sub(body.len()).min(piece.len());
                body.extend_from_slice(&piece[..room]);
                self.request = RequestState::Refused { until, code, retry_after, body };
            }
            RequestState::Streaming { stream, since, .. } => {
                self.stream_bytes(now, stream, since, piece, store);
            }
            // The request was cancelled.
            request => self.request = request,
        }
    }

    /// Handles the end of the response's body. `broken` is the reason of a body that broke off.
    pub fn on_end(&mut self, now: Instant, broken: Option<&str>, store: &mut impl ReflectorStore) {
        match std::mem::replace(&mut self.request, RequestState::Planned { at: now }) {
            RequestState::Refused { code, retry_after, body, .. } => {
                self.refused(now, ErrorStatus::read(code, &body), retry_after, store);
            }
            RequestState::Streaming { stream, since, .. } => {
                self.stream_ended(now, *stream, since, broken, store);
            }
            RequestState::Sent { .. } => {
                let reason = broken.unwrap_or("the connection was closed").to_owned();
                self.failed(now, WatchErrorKind::Unreachable(reason), None, store);
            }
            request @ RequestState::Planned { .. } => self.request = request,
        }
    }

    /// Returns the plan that lists everything.
    fn list_plan(&self, now: Instant) -> Plan {
        match self.watch_list {
            WatchListSupport::Silent { retry_at } if now < retry_at => Plan::List { token: None },
            WatchListSupport::Refused => Plan::List { token: None },
            WatchListSupport::Assumed | WatchListSupport::Silent { .. } => Plan::WatchList,
        }
    }

    /// Makes the watch compare revisions with the server before it resumes.
    fn verify(&mut self) {
        if let Plan::Watch { version } = &mut self.plan
            && version.parse::<u64>().is_ok()
        {
            self.plan = Plan::Verify { version: std::mem::take(version) };
        }
    }

    /// Lists everything again instead of continuing the watch. A pending delay after a failure is kept. Before the first list
    /// has ended, the call has no effect.
    ///
    /// The server sends no event when a change of a CRD's conversion changes the content of stored objects.
    pub fn list_again(&mut self, now: Instant, reason: &'static str, store: &mut impl ReflectorStore) {
        if !self.has_listed() {
            return;
        }
        let not_before = match self.request {
            RequestState::Planned { at } => at,
            _ => now,
        };
        self.relist(now, reason, store);
        if let RequestState::Planned { at } = &mut self.request {
            *at = not_before.max(*at);
        }
    }

    fn relist(&mut self, now: Instant, reason: &'static str, store: &mut impl ReflectorStore) {
        store.notice(ReflectorEvent::Relisting { reason });
        self.plan = self.list_plan(now);
        self.lagging = false;
        (self.too_large, self.corrupt) = (0, 0);
        // At once, unless the last relist was recent: the delays grow while a server always sends 410.
        let recent = self.relisted.is_some_and(|then| now < then + self.config.backoff.max);
        let delay = if recent { self.relists.next(false) } else { Duration::ZERO };
        if !recent {
            self.relists.reset();
        }
        self.relisted = Some(now + delay);
        self.request = RequestState::Planned { at: now + delay };
    }

    fn failed(
        &mut self,
        now: Instant,
        kind: WatchErrorKind,
        retry_after: Option<Duration>,
        store: &mut impl ReflectorStore,
    ) {
        let error = WatchError { resource: self.config.resource.clone(), kind };
        let asked = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
        let retry_in = self.backoff.next(error.is_unknown_kind()).max(asked);
        if let Plan::List { token } = &mut self.plan {
            // The list starts again: objects of the pages that were read may be deleted in the meantime.
            *token = None;
        }
        if error.kind.may_hide_a_restart() {
            self.verify();
        }
        store.notice(ReflectorEvent::Failed { error, retry_in });
        self.request = RequestState::Planned { at: now + retry_in };
    }

    fn refused(
        &mut self,
        now: Instant,
        status: ErrorStatus,
        retry_after: Option<Duration>,
        store: &mut impl ReflectorStore,
    ) {
        let retry_after = retry_after.max(status.retry_after());
        if status.is_expired() {
            if matches!(self.plan, Plan::List { token: Some(_) }) {
                self.paged = false;
            }
            return self.relist(now, "the server no longer has the resourceVersion (410)", store);
        }
        let unsupported = matches!(status.code, 400 | 405 | 406 | 415 | 422 | 501);
        if matches!(self.plan, Plan::Watch { .. }) && status.is_unreadable_deletion() {
            return self.relist(now, "the server cannot show the deletion of an unreadable object", store);
        }
        if self.plan == Plan::WatchList && unsupported {
            return self.fall_back(now, WatchListSupport::Refused, store);
        }
        if let Plan::Verify { version } = &mut self.plan
            && (unsupported || status.code == 403)
        {
            // The credentials allow watches only: resume without a comparison.
            self.plan = Plan::Watch { version: std::mem::take(version) };
            return;
        }
        if status.is_version_too_large() {
            self.too_large += 1;
            if self.too_large >= 3 {
                return self.relist(
                    now,
                    "the server stays behind the resourceVersion: it was replaced or restored",
                    store,
                );
            }
        }
        // The kind was deleted. If the kind is created again, the objects are new.
        let deleted = status.code == 404 && matches!(self.plan, Plan::Watch { .. } | Plan::Verify { .. });
        if deleted {
            self.plan = self.list_plan(now);
        }
        self.failed(now, WatchErrorKind::Refused(status), retry_after, store);
        if deleted {
            store.notice(ReflectorEvent::Relisting { reason: "the server no longer has the kind (404)" });
        }
    }

    fn fall_back(&mut self, now: Instant, support: WatchListSupport, store: &mut impl ReflectorStore) {
        self.watch_list = support;
        self.plan = Plan::List { token: None };
        self.request = RequestState::Planned { at: now };
        store.notice(ReflectorEvent::WatchListUnsupported);
    }

    /// Handles a passed deadline.
    fn time_out(&mut self, now: Instant, store: &mut impl ReflectorStore) {
        let what = match std::mem::replace(&mut self.request, RequestState::Planned { at: now }) {
            RequestState::Sent { .. } => "the server did not respond in time",
            RequestState::Refused { code, retry_after, body, .. } => {
                return self.refused(now, ErrorStatus::read(code, &body), retry_after, store);
            }
            RequestState::Streaming { stream, .. } => match *stream {
                Stream::Watch { initial: true, .. } => {
                    let retry_at = now + self.config.watch_list_retry;
                    return self.fall_back(now, WatchListSupport::Silent { retry_at }, store);
                }
                Stream::Watch { .. } => "the watch was silent for too long and was cancelled",
                Stream::List { .. } | Stream::Verify { .. } => {
                    "the list was silent for too long and was cancelled"
                }
            },
            RequestState::Planned { .. } => return,
        };
        self.failed(now, WatchErrorKind::Stalled(what), None, store);
    }

    /// Returns when a silent body is given up.
    fn deadline(&self, now: Instant, stream: &Stream) -> Instant {
        let watch = self.config.watch_timeout + self.config.watch_timeout / 10 + Duration::from_secs(10);
        now + match stream {
            Stream::Watch { initial: false, .. } if self.bookmarks => self.config.idle_timeout.min(watch),
            Stream::Watch { initial: false, .. } => watch,
            Stream::Watch { .. } | Stream::List { .. } | Stream::Verify { .. } => self.config.quiet_timeout,
        }
    }
}
