//! The HTTP/2 connections of one sort of requests.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use http::Uri;
use parking_lot::Mutex;
use tokio::{runtime::Handle, time::Instant};

use crate::{
    connection::{Connection, Lease, Shared},
    dialer::{Dialer, Offer, is_http2},
    error::{BoxError, Error, Result},
    redial::Redial,
};

/// A connection without a stream is closed after this time, as in Go.
const IDLE_LIMIT: Duration = Duration::from_secs(90);

/// The HTTP/2 connections of one sort of requests. A connection is opened when all others have as many streams as the server accepts.
pub(crate) struct Lane {
    dialer: Arc<Dialer>,
    url: Uri,
    server: String,
    runtime: Handle,
    state: Mutex<State>,
    /// Held while a connection is opened.
    dialing: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    connections: Vec<Connection>,
    redial: Redial,
    /// The number of connections that were opened or that failed to open.
    attempts: u64,
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

impl Lane {
    pub(crate) fn new(dialer: Arc<Dialer>, url: Uri, server: &str, runtime: Handle) -> Arc<Self> {
        Arc::new(Self {
            dialer,
            url,
            server: server.to_owned(),
            runtime,
            state: Mutex::default(),
            dialing: tokio::sync::Mutex::default(),
        })
    }

    /// Takes a stream of a connection, and opens a connection if necessary. A caller that leaves does not interrupt the opening.
    pub(crate) async fn stream(self: &Arc<Self>) -> Result<Stream> {
        let attempts = {
            let mut state = self.state.lock();
            match state.lease(self.dialer.tls().generation()) {
                Some(lease) => return Ok(Stream::Http2(lease)),
                None => state.attempts,
            }
        };
        let dialing = self.runtime.spawn(self.clone().open(attempts));
        dialing.await.map_err(|_| Error::stopped())?
    }

    /// Opens a connection, unless another caller has opened a connection in the meantime. `attempts` is the number of attempts that the
    /// caller knows: callers that wait for the same attempt get the same failure, or the same refusal of HTTP/2.
    async fn open(self: Arc<Self>, attempts: u64) -> Result<Stream> {
        let _dialing = self.dialing.lock().await;
        let not_before = {
            let mut state = self.state.lock();
            if let Some(lease) = state.lease(self.dialer.tls().generation()) {
                return Ok(Stream::Http2(lease));
            }
            if state.attempts > attempts {
                if let Some(failure) = &state.failure {
                    return Err(failure.clone());
                }
                if state.is_unsupported {
                    return Ok(Stream::Unsupported);
                }
            }
            state.redial.next_attempt()
        };
        if let Some(not_before) = not_before {
            tokio::time::sleep_until(not_before).await;
        }
        let opened = self.dial().await;
        let mut state = self.state.lock();
        state.attempts += 1;
        match opened {
            Ok(connection) => {
                state.redial.succeeded();
                state.failure = None;
                state.is_unsupported = connection.is_none();
                let Some(connection) = connection else { return Ok(Stream::Unsupported) };
                self.runtime.spawn(drive(connection.shared().clone(), Arc::downgrade(&self)));
                let lease = connection.lease();
                state.connections.push(connection);
                lease.map(Stream::Http2).ok_or_else(Error::stopped)
            }
            Err(cause) => {
                let failure = Error::connect(&self.server, cause);
                state.redial.failed(Instant::now(), fastrand::f64());
                state.failure = Some(failure.clone());
                Err(failure)
            }
        }
    }

    /// Returns `None` if the server does not speak HTTP/2.
    async fn dial(&self) -> Result<Option<Connection>, BoxError> {
        let (stream, generation) = self.dialer.clone().dial(self.url.clone(), Offer::Any).await?;
        if !is_http2(&stream) {
            return Ok(None);
        }
        Ok(Some(Connection::begin(stream, generation).await?))
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
        self.connections.retain(|connection| connection.is_current(generation));
        self.connections.iter().find_map(Connection::lease)
    }
}

/// Drives a connection until the connection accepts no further request, or the lane has forgotten the connection.
async fn drive(shared: Arc<Shared>, lane: Weak<Lane>) {
    let mut look = Instant::now() + IDLE_LIMIT;
    loop {
        tokio::select! {
            biased;
            ended = std::future::poll_fn(|cx| shared.poll(cx)) => {
                if let Err(error) = ended {
                    tracing::debug!(%error, "an HTTP/2 connection to the API server broke");
                }
                break;
            }
            () = tokio::time::sleep_until(look) => {
                let now = Instant::now();
                look = lane.upgrade().map_or(now + IDLE_LIMIT, |lane| lane.remove_idle(&shared, now));
            }
        }
    }
    if let Some(lane) = lane.upgrade() {
        lane.remove(&shared);
    }
}
