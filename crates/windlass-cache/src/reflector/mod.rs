//! Keeps a store equal to the server's collection: a state machine over list and watch.
//!
//! It does no I/O and reads no clock. A shell asks it by [`Reflector::poll`] what to do, sends the requests it wants,
//! and feeds it with what comes back. What the answers mean for the objects goes to a [`Sink`].
//!
//! # Resuming a watch
//! A watch that ends resumes at the newest resource version that it has shown. A server that was replaced or restored
//! from a backup may accept a resource version that it does not have yet, and then send nothing. Therefore:
//!
//! - After a failed connection (no answer, a body that breaks off or stands still, an answer 502, 503 or 504) the
//!   reflector first sends a list with `limit=1`. Such a list is consistent: no replica answers it with an older state.
//!   If its resource version is lower than that of the watch, the server's history is another one, and everything is
//!   listed again. Otherwise the watch resumes. A server that forbids lists (403) is not compared.
//! - A bookmark with a lower resource version than one before it may come from a replica that lags: the same list
//!   decides. If the history is the same, lower bookmarks are ignored until the replica has caught up.
//! - An event with a lower resource version than one before it leads to a list at once: no server sends one for a
//!   watch that begins later.
//! - An answer 404 means that the kind was deleted. Everything is listed once the server has it again.
//! - An answer 410 means that the server no longer has the resource version: everything is listed again.
//!
//! Resource versions that are not numbers are not compared. A watch that the server ends in the ordinary way resumes
//! without a list.

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
    error::{Refusal, WatchErrorKind},
    stream::Stream,
};
use crate::{
    ObjectKey,
    scan::{ScanError, ScanOptions, Scanned, Scanner},
};

/// What the shell is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Drop any request under way and send this one.
    Send(ListWatch),
    /// Hand in what the request under way brings, and ask again at this time at the latest.
    Receive {
        /// When to ask again.
        until: Instant,
    },
    /// Drop any request under way and ask again at this time.
    Sleep {
        /// When to ask again.
        until: Instant,
    },
}

/// Where the objects go.
pub trait Sink {
    /// A list begins: what it does not show is gone when it ends.
    fn begin_list(&mut self);
    /// An object as it is.
    fn upsert(&mut self, object: Scanned<'_>) -> Result<(), ScanError>;
    /// An object is gone; this was its last state.
    fn delete(&mut self, object: Scanned<'_>) -> Result<(), ScanError>;
    /// An object of the list could not be read. Without a key it may be any.
    fn unreadable(&mut self, key: Option<&ObjectKey>);
    /// The list has ended.
    fn end_list(&mut self);
    /// Everything up to this resourceVersion has been seen. It is lower than before when the server went back.
    fn progress(&mut self, resource_version: &str);
    /// Something that a person may want to know.
    fn notice(&mut self, notice: Notice);
    /// The bytes of memory that the objects of this watch share, beside what each takes of its own.
    fn shapes_memory(&mut self, bytes: usize) {
        let _ = bytes;
    }
}

/// Something that a person may want to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A list or watch failed and is tried again after a delay.
    Failed {
        /// Why.
        error: WatchError,
        /// When it is tried again.
        retry_in: Duration,
    },
    /// After failures, it works again.
    Recovered,
    /// One object could not be read. The watch goes on; the cache keeps what it had.
    Unreadable(WatchError),
    /// An index function panicked: the object has no value in the index. Reported once for each index and change.
    IndexPanicked {
        /// The name of the index.
        index: String,
        /// The first object for which it panicked.
        object: ObjectKey,
    },
    /// The server cannot list by watch: lists from now on.
    WatchListUnsupported,
    /// The watch cannot go on where it was: everything is listed again.
    Relisting {
        /// Why.
        reason: &'static str,
    },
}

/// What to ask the server for next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Plan {
    /// Everything, as the beginning of a watch.
    WatchList,
    /// A page of a list.
    List { token: Option<String> },
    /// What comes behind a resourceVersion.
    Watch { version: String },
    /// A list of one object: its resource version shows whether the server still has the history in which the watch
    /// was at `version`.
    Verify { version: String },
}

/// Whether lists come as the beginning of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WatchListSupport {
    /// The server supports it, or has not been asked yet.
    Assumed,
    /// The server was silent after the initial events; it is asked again after this time.
    Silent { retry_at: Instant },
    /// The server refused it, or it is switched off.
    Refused,
}

#[derive(Debug)]
enum RequestState {
    /// The plan is to be carried out at this time.
    Planned { at: Instant },
    /// The request is under way.
    Asked { until: Instant },
    /// The answer is an error; this much of it has come.
    Refused { until: Instant, code: u16, retry_after: Option<Duration>, body: Vec<u8> },
    /// The answer's body is coming.
    Streaming { until: Instant, stream: Box<Stream>, since: Instant },
}

/// Keeps a store equal to the server's collection.
#[derive(Debug)]
pub struct Reflector {
    config: ReflectorConfig,
    scanner: Scanner,
    backoff: Backoff,
    plan: Plan,
    request: RequestState,
    watch_list: WatchListSupport,
    /// Lists come in pages; not after a page's token has expired, until a list has come through.
    paged: bool,
    /// The server sends bookmarks.
    bookmarks: bool,
    /// A bookmark was older than the watch although the server's history is the same: a replica that lags sent it.
    lagging: bool,
    /// How often the server was behind the version asked for.
    too_large: u32,
    /// How often in a row a watch has ended within an event.
    corrupt: u32,
    /// When everything was last listed anew.
    relisted: Option<Instant>,
    limit: usize,
}

/// How much of an error's body is read.
const ERROR_BODY: usize = 64 << 10;
/// The longest `Retry-After` that is obeyed: a server cannot silence a watch for longer.
const MAX_RETRY_AFTER: Duration = Duration::from_mins(2);

impl Reflector {
    /// A reflector that begins at once.
    pub fn new(config: ReflectorConfig, options: &ScanOptions, now: Instant) -> Self {
        let config = config.bounded();
        let backoff = Backoff::new(config.backoff.clone(), config.seed);
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
            limit: options.max_object_size,
            config,
        };
        reflector.plan = reflector.list_plan(now);
        reflector
    }

    /// Whether a list has ended: the reflector follows changes from there.
    pub fn has_listed(&self) -> bool {
        matches!(self.plan, Plan::Watch { .. })
    }

    /// What the shell is to do now.
    pub fn poll(&mut self, now: Instant, sink: &mut impl Sink) -> Step {
        match &self.request {
            RequestState::Planned { at } if now < *at => return Step::Sleep { until: *at },
            RequestState::Planned { .. } => return Step::Send(self.send(now)),
            RequestState::Asked { until }
            | RequestState::Refused { until, .. }
            | RequestState::Streaming { until, .. } => {
                if now < *until {
                    return Step::Receive { until: *until };
                }
            }
        }
        self.stalled(now, sink);
        self.poll_planned(now)
    }

    fn poll_planned(&mut self, now: Instant) -> Step {
        match self.request {
            RequestState::Planned { at } if now < at => Step::Sleep { until: at },
            _ => Step::Send(self.send(now)),
        }
    }

    fn send(&mut self, now: Instant) -> ListWatch {
        self.request = RequestState::Asked { until: now + self.config.response_timeout };
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

    /// The server has answered the request. `retry_after` is the header of that name.
    pub fn on_response(
        &mut self,
        now: Instant,
        code: u16,
        retry_after: Option<Duration>,
        sink: &mut impl Sink,
    ) {
        let until = now + self.config.quiet_timeout;
        if !(200..300).contains(&code) {
            self.request = RequestState::Refused { until, code, retry_after, body: Vec::new() };
            return;
        }
        if self.plan == Plan::WatchList || self.plan == (Plan::List { token: None }) {
            sink.begin_list();
        }
        let stream = Stream::new(&self.plan, self.limit);
        self.request = RequestState::Streaming {
            until: self.deadline(now, &stream),
            stream: Box::new(stream),
            since: now,
        };
    }

    /// A piece of the answer's body.
    pub fn on_bytes(&mut self, now: Instant, piece: Bytes, sink: &mut impl Sink) {
        match std::mem::replace(&mut self.request, RequestState::Planned { at: now }) {
            RequestState::Refused { until, code, retry_after, mut body } => {
                let room = ERROR_BODY.saturating_sub(body.len()).min(piece.len());
                body.extend_from_slice(&piece[..room]);
                self.request = RequestState::Refused { until, code, retry_after, body };
            }
            RequestState::Streaming { stream, since, .. } => {
                self.stream_bytes(now, stream, since, piece, sink)
            }
            // Bytes of a request that was given up.
            request => self.request = request,
        }
    }

    /// The answer's body has ended, or breaks off for a reason.
    pub fn on_end(&mut self, now: Instant, broken: Option<&str>, sink: &mut impl Sink) {
        match std::mem::replace(&mut self.request, RequestState::Planned { at: now }) {
            RequestState::Refused { code, retry_after, body, .. } => {
                self.refused(now, Refusal::read(code, &body), retry_after, sink);
            }
            RequestState::Streaming { stream, since, .. } => {
                self.stream_ended(now, *stream, since, broken, sink)
            }
            RequestState::Asked { .. } => {
                let reason = broken.unwrap_or("the connection was closed").to_owned();
                self.failed(now, WatchErrorKind::Unreachable(reason), None, sink);
            }
            request @ RequestState::Planned { .. } => self.request = request,
        }
    }

    /// Everything anew.
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

    fn relist(&mut self, now: Instant, reason: &'static str, sink: &mut impl Sink) {
        sink.notice(Notice::Relisting { reason });
        self.plan = self.list_plan(now);
        self.lagging = false;
        (self.too_large, self.corrupt) = (0, 0);
        // At once, unless that has just been done: a server that sends nothing but 410 is not asked in a tight loop.
        let recent = self.relisted.is_some_and(|then| now < then + self.config.backoff.max);
        let delay = if recent { self.backoff.next(false) } else { Duration::ZERO };
        self.relisted = Some(now);
        self.request = RequestState::Planned { at: now + delay };
    }

    fn failed(
        &mut self,
        now: Instant,
        kind: WatchErrorKind,
        retry_after: Option<Duration>,
        sink: &mut impl Sink,
    ) {
        let error = WatchError { resource: self.config.resource.clone(), kind };
        let asked = retry_after.unwrap_or_default().min(MAX_RETRY_AFTER);
        let retry_in = self.backoff.next(error.is_unknown_kind()).max(asked);
        if let Plan::List { token } = &mut self.plan {
            // Pages already read have been applied; the list begins again nevertheless, since what it showed then
            // may have gone before it goes on.
            *token = None;
        }
        if error.kind.may_hide_a_restart() {
            self.verify();
        }
        sink.notice(Notice::Failed { error, retry_in });
        self.request = RequestState::Planned { at: now + retry_in };
    }

    fn refused(
        &mut self,
        now: Instant,
        refusal: Refusal,
        retry_after: Option<Duration>,
        sink: &mut impl Sink,
    ) {
        let retry_after = retry_after.max(refusal.retry_after());
        if refusal.is_expired() {
            if matches!(self.plan, Plan::List { token: Some(_) }) {
                self.paged = false;
            }
            return self.relist(now, "the server no longer has the resourceVersion (410)", sink);
        }
        let unsupported = matches!(refusal.code, 400 | 405 | 406 | 415 | 422 | 501);
        if self.plan == Plan::WatchList && unsupported {
            return self.fall_back(now, WatchListSupport::Refused, sink);
        }
        if let Plan::Verify { version } = &mut self.plan
            && (unsupported || refusal.code == 403)
        {
            // Who may only watch cannot compare: the watch resumes.
            self.plan = Plan::Watch { version: std::mem::take(version) };
            return;
        }
        if refusal.is_version_too_large() {
            self.too_large += 1;
            if self.too_large >= 3 {
                return self.relist(now, "the server is behind the resourceVersion: it was replaced", sink);
            }
        }
        // The kind was deleted. When it is there again, its objects are others.
        let deleted = refusal.code == 404 && matches!(self.plan, Plan::Watch { .. } | Plan::Verify { .. });
        if deleted {
            self.plan = self.list_plan(now);
        }
        self.failed(now, WatchErrorKind::Refused(refusal), retry_after, sink);
        if deleted {
            sink.notice(Notice::Relisting { reason: "the server no longer has the kind (404)" });
        }
    }

    fn fall_back(&mut self, now: Instant, support: WatchListSupport, sink: &mut impl Sink) {
        self.watch_list = support;
        self.plan = Plan::List { token: None };
        self.request = RequestState::Planned { at: now };
        sink.notice(Notice::WatchListUnsupported);
    }

    /// A deadline has passed.
    fn stalled(&mut self, now: Instant, sink: &mut impl Sink) {
        let what = match std::mem::replace(&mut self.request, RequestState::Planned { at: now }) {
            RequestState::Asked { .. } => "the server did not answer in time",
            RequestState::Refused { code, retry_after, body, .. } => {
                return self.refused(now, Refusal::read(code, &body), retry_after, sink);
            }
            RequestState::Streaming { stream, .. } => match *stream {
                Stream::Watch { initial: true, .. } => {
                    let retry_at = now + self.config.watch_list_retry;
                    return self.fall_back(now, WatchListSupport::Silent { retry_at }, sink);
                }
                Stream::Watch { .. } => "the watch stood still and was cut",
                Stream::List { .. } | Stream::Verify { .. } => "the list stood still and was cut",
            },
            RequestState::Planned { .. } => return,
        };
        self.failed(now, WatchErrorKind::Stalled(what), None, sink);
    }

    /// When a body that brings nothing more is given up.
    fn deadline(&self, now: Instant, stream: &Stream) -> Instant {
        let watch = self.config.watch_timeout + self.config.watch_timeout / 10 + Duration::from_secs(10);
        now + match stream {
            Stream::Watch { initial: false, .. } if self.bookmarks => self.config.idle_timeout.min(watch),
            Stream::Watch { initial: false, .. } => watch,
            Stream::Watch { .. } | Stream::List { .. } | Stream::Verify { .. } => self.config.quiet_timeout,
        }
    }
}
