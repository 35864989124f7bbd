//! The HTTP/2 connections of one sort of requests.

use std::{
    pin::pin,
    sync::{Arc, Weak},
    task::{Context, Poll},
    time::Duration,
};

use http::Uri;
use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::Notify,
    time::{Instant, sleep_until, timeout_at},
};

use crate::{
    connection::{Connection, Lease, Shared},
    dialer::{Dialer, Offer, is_http2},
    error::{BoxError, Error, Result},
    keep_alive::KeepAlive,
    redial::Redial,
};

/// A connection without a stream is closed after this time, as in Go.
const IDLE_LIMIT: Duration = Duration::from_secs(90);

/// An attempt to connect that takes this long gets company: a packet may be lost, and a later attempt may arrive. A request for a Lease has 5 s.
const SLOW_DIAL: Duration = Duration::from_secs(2);

/// The most attempts to connect at the same time.
const MOST_DIALS: usize = 3;

/// The HTTP/2 connections of one sort of requests. A connection is opened when all others have as many streams as the server accepts.
pub(crate) struct Lane {
    dialer: Arc<Dialer>,
    url: Uri,
    server: String,
    runtime: Handle,
    state: Mutex<State>,
    /// Wakes all callers at the end of each attempt to connect, and one caller for each stream that becomes free.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct State {
    connections: Vec<Connection>,
    redial: Redial,
    /// The number of attempts to connect that are under way.
    dials: usize,
    /// The time at which the last attempt began.
    last_dial: Option<Instant>,
    /// The time at which an attempt succeeded last.
    last_success: Option<Instant>,
    /// The number of attempts that have ended.
    ended_dials: u64,
    /// The last attempt, if the attempt failed.
    failure: Option<Error>,
    /// The last attempt found a server without HTTP/2.
    is_unsupported: bool,
}

/// The outcome of asking a lane for a stream.
pub(crate) enum Stream {
    Http2(Lease),
    /// The server does not speak HTTP/2.
    Unsupported,
}

/// The next step of a caller that asks for a stream.
enum Turn {
    Ended(Result<Stream>),
    /// Wait for the end of an attempt, for a free stream, or for the time at which another attempt may begin. `None` while the most attempts
    /// are under way.
    Wait(Option<Instant>),
}

impl Lane {
    pub(crate) fn new(dialer: Arc<Dialer>, url: Uri, server: &str, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            dialer,
            url,
            server: server.to_owned(),
            runtime,
            state: Mutex::default(),
            changed: Arc::default(),
        })
    }

    /// Takes a stream of a connection, and opens a connection if necessary. A caller that leaves does not interrupt the opening.
    ///
    /// Callers that wait for the same attempt to connect get the same failure, or the same refusal of HTTP/2.
    pub(crate) async fn stream(self: &Arc<Self>) -> Result<Stream> {
        if let Some(lease) = self.lease() {
            return Ok(Stream::Http2(lease));
        }
        // Boxed, because callers keep the future of each request.
        Box::pin(self.await_stream()).await
    }

    fn lease(&self) -> Option<Lease> {
        self.state.lock().lease(self.dialer.tls().generation())
    }

    /// Waits for a connection with a free stream.
    async fn await_stream(self: &Arc<Self>) -> Result<Stream> {
        let mut known_dials = None;
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let until = match self.turn(&mut known_dials) {
                Turn::Ended(outcome) => return outcome,
                Turn::Wait(until) => until,
            };
            match until {
                Some(until) => drop(timeout_at(until, changed).await),
                None => changed.await,
            }
        }
    }

    /// `known_dials` is the number of attempts that had ended when the caller came.
    fn turn(self: &Arc<Self>, known_dials: &mut Option<u64>) -> Turn {
        let mut state = self.state.lock();
        if let Some(lease) = state.lease(self.dialer.tls().generation()) {
            return Turn::Ended(Ok(Stream::Http2(lease)));
        }
        let known_dials = *known_dials.get_or_insert(state.ended_dials);
        if state.ended_dials > known_dials {
            if let Some(failure) = &state.failure {
                return Turn::Ended(Err(failure.clone()));
            }
            if state.is_unsupported {
                return Turn::Ended(Ok(Stream::Unsupported));
            }
        }
        let now = Instant::now();
        let begins_at = state.begin_dial(now);
        let until = (state.dials < MOST_DIALS).then(|| state.last_dial.unwrap_or(now) + SLOW_DIAL);
        drop(state);
        if let Some(begins_at) = begins_at {
            // A runtime that has shut down drops the attempt at once, which locks the state.
            let dial = Dial { lane: self.clone(), begins_at, has_ended: false };
            self.runtime.spawn(dial.run());
        }
        Turn::Wait(until)
    }

    /// Returns `None` if the server does not speak HTTP/2.
    async fn connect(&self) -> Result<Option<(Connection, KeepAlive)>, BoxError> {
        let (stream, generation) = self.dialer.clone().dial(self.url.clone(), Offer::Any).await?;
        if !is_http2(&stream) {
            return Ok(None);
        }
        Ok(Some(Connection::begin(stream, generation, self.changed.clone()).await?))
    }

    /// Forgets a connection.
    fn remove(&self, shared: &Arc<Shared>) {
        self.state.lock().connections.retain(|connection| !Arc::ptr_eq(connection.shared(), shared));
    }

    /// Forgets a connection that has been idle for too long. Returns the next time to look.
    fn remove_idle(&self, shared: &Arc<Shared>, now: Instant) -> Instant {
        // A stream is taken under the lock of the state only.
        let mut state = self.state.lock();
        match shared.idle_since() {
            Some(since) if now.saturating_duration_since(since) >= IDLE_LIMIT => {
                state.connections.retain(|connection| !Arc::ptr_eq(connection.shared(), shared));
                now + IDLE_LIMIT
            }
            Some(since) => since + IDLE_LIMIT,
            None => now + IDLE_LIMIT,
        }
    }
}

impl State {
    /// Takes a stream of the first connection that has a free stream, so that the last connections become idle. Connections that are closed
    /// or of an earlier generation get no further requests.
    fn lease(&mut self, generation: u64) -> Option<Lease> {
        self.connections.retain_mut(|connection| connection.is_current(generation));
        self.connections.iter().find_map(Connection::lease)
    }

    /// Counts another attempt to connect, and returns the time at which the attempt begins. Returns `None` while an attempt is under way
    /// that may still succeed soon.
    fn begin_dial(&mut self, now: Instant) -> Option<Instant> {
        let is_slow = self.last_dial.is_none_or(|last| now >= last + SLOW_DIAL);
        if self.dials > 0 && !(is_slow && self.dials < MOST_DIALS) {
            return None;
        }
        let begins_at = self.redial.next_attempt().map_or(now, |not_before| not_before.max(now));
        self.dials += 1;
        self.last_dial = Some(begins_at);
        Some(begins_at)
    }
}

/// An attempt to connect. An attempt that is dropped, by a panic too, counts as failed.
struct Dial {
    lane: Arc<Lane>,
    begins_at: Instant,
    has_ended: bool,
}

impl Dial {
    async fn run(mut self) {
        sleep_until(self.begins_at).await;
        let opened = self.lane.connect().await;
        let opened = opened.map_err(|cause| Error::connect(&self.lane.server, cause));
        self.end(opened);
    }

    fn end(&mut self, opened: Result<Option<(Connection, KeepAlive)>>) {
        self.has_ended = true;
        let (lane, now) = (&self.lane, Instant::now());
        let mut state = lane.state.lock();
        state.dials -= 1;
        state.ended_dials += 1;
        match opened {
            Ok(opened) => {
                state.redial.succeeded();
                state.last_success = Some(now);
                state.failure = None;
                state.is_unsupported = opened.is_none();
                if let Some((connection, keep_alive)) = opened {
                    let shared = connection.shared().clone();
                    lane.runtime.spawn(drive(shared, keep_alive, Arc::downgrade(lane)));
                    state.connections.push(connection);
                }
            }
            // A later attempt was faster.
            Err(_) if state.last_success.is_some_and(|success| success >= self.begins_at) => {}
            Err(failure) => {
                state.redial.failed(now, fastrand::f64());
                state.failure = Some(failure);
            }
        }
        drop(state);
        lane.changed.notify_waiters();
    }
}

impl Drop for Dial {
    fn drop(&mut self) {
        if !self.has_ended {
            self.end(Err(Error::stopped()));
        }
    }
}

/// Drives a connection until the connection has ended, or the lane has forgotten the connection.
async fn drive(shared: Arc<Shared>, mut keep_alive: KeepAlive, lane: Weak<Lane>) {
    let mut look = Instant::now() + IDLE_LIMIT;
    let mut gathers = false;
    loop {
        tokio::select! {
            biased;
            ended = std::future::poll_fn(|cx| poll_gathered(&shared, &mut gathers, cx)) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "an HTTP/2 connection to the API server broke");
                }
                break;
            }
            () = std::future::poll_fn(|cx| keep_alive.poll_broken(cx)) => {
                tracing::debug!("an HTTP/2 connection to the API server does not answer pings");
                shared.end();
                break;
            }
            () = sleep_until(look) => {
                let now = Instant::now();
                look = lane.upgrade().map_or(now + IDLE_LIMIT, |lane| lane.remove_idle(&shared, now));
            }
        }
    }
    if let Some(lane) = lane.upgrade() {
        lane.remove(&shared);
    }
}

/// Drives a connection after the tasks that are ready now: the requests of these tasks leave together, in one packet.
fn poll_gathered(shared: &Shared, gathers: &mut bool, cx: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
    *gathers = !*gathers;
    if *gathers {
        // The first poll asks for another poll when no other task is ready.
        let _ = pin!(tokio::task::yield_now()).poll(cx);
        return Poll::Pending;
    }
    shared.poll(cx)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use kube_client::Config;

    use super::*;

    /// The server accepts connections, and never says a word.
    #[tokio::test(start_paused = true)]
    async fn a_caller_sleeps_while_all_attempts_to_connect_hang() {
        let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = silent.local_addr().expect("an address");
        let url: Uri = format!("https://{address}").parse().expect("a URL");
        let mut config = Config::new(url.clone());
        config.accept_invalid_certs = true;
        let dialer = Arc::new(Dialer::new(&Arc::new(config)).expect("a dialer"));
        let lane = Lane::new(dialer, url, "server", Handle::current());

        let mut stream = pin!(lane.stream());
        let mut polls = 0;
        let outcome = poll_fn(|cx| {
            polls += 1;
            assert!(polls < 100, "the caller is busy");
            stream.as_mut().poll(cx)
        });
        let error = outcome.await.err().expect("no connection");
        assert!(error.is_connect(), "{error}");
    }
}
