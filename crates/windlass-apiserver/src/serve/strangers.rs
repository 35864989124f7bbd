//! The connections of a listener without an authenticated user.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// How long a connection may be silent while the number of silent connections is above the limit. A client that opens a thousand
/// connections at once needs seconds for the handshakes.
const PATIENCE: Duration = Duration::from_secs(5);

/// The limits of silent connections without an authenticated user.
#[derive(Clone, Copy, Debug)]
pub(super) struct StrangerLimits {
    /// The number of connections above which a further connection closes those that have been silent for [`PATIENCE`].
    pub(super) patient: usize,
    /// The largest number of connections: a further connection closes the connection with the longest silence. At least 1.
    pub(super) largest: usize,
}

impl Default for StrangerLimits {
    fn default() -> Self {
        Self { patient: 512, largest: 2048 }
    }
}

/// A limited number of silent connections without an authenticated user. Cheap to clone.
///
/// Anybody who reaches the port may open connections and say nothing. A further connection then closes the connection that has been
/// silent the longest, so that such clients take neither all file descriptors nor the place of other clients.
#[derive(Clone, Debug)]
pub(super) struct Strangers(Arc<Mutex<Silent>>);

#[derive(Debug)]
struct Silent {
    limits: StrangerLimits,
    /// The number of the next place.
    next: u64,
    /// The silent connections with the beginning of the silence, the longest silence first.
    connections: BTreeMap<u64, (Instant, CancellationToken)>,
}

impl Silent {
    fn new(limits: StrangerLimits) -> Self {
        Self { limits, next: 0, connections: BTreeMap::new() }
    }

    fn add(&mut self, connection: &CancellationToken, now: Instant) -> u64 {
        let place = self.next;
        self.next += 1;
        self.connections.insert(place, (now, connection.clone()));
        while self.is_full(now) && self.close_one() {}
        place
    }

    fn is_full(&self, now: Instant) -> bool {
        let longest = self.connections.first_key_value().map(|(_, (since, _))| now.duration_since(*since));
        let count = self.connections.len();
        count > self.limits.largest.max(1)
            || count > self.limits.patient && longest.is_some_and(|silence| silence >= PATIENCE)
    }

    fn close_one(&mut self) -> bool {
        let Some((_, (_, connection))) = self.connections.pop_first() else { return false };
        connection.cancel();
        true
    }
}

impl Strangers {
    pub(super) fn new(limits: StrangerLimits) -> Self {
        Self(Arc::new(Mutex::new(Silent::new(limits))))
    }

    /// Adds a connection. May close another connection.
    pub(super) fn add(&self) -> Stranger {
        let closed = CancellationToken::new();
        let place = self.0.lock().add(&closed, Instant::now());
        let state = Mutex::new(State { place: Some(place), requests: 0, is_known: false });
        Stranger { strangers: self.clone(), closed, has_asked: AtomicBool::new(false), state }
    }

    /// Closes the connection with the longest silence. Returns false if there is none.
    pub(super) fn close_one(&self) -> bool {
        self.0.lock().close_one()
    }
}

/// A connection that had no authenticated user at the start.
#[derive(Debug)]
pub(super) struct Stranger {
    strangers: Strangers,
    closed: CancellationToken,
    /// True if the connection has begun a request.
    has_asked: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The place among the silent connections.
    place: Option<u64>,
    /// The number of requests in flight.
    requests: usize,
    /// True if the client has an authenticated user.
    is_known: bool,
}

impl Stranger {
    /// Completes when the connection must be closed.
    pub(super) fn closed(&self) -> WaitForCancellationFuture<'_> {
        self.closed.cancelled()
    }

    /// Returns whether the client has an authenticated user.
    pub(super) fn is_known(&self) -> bool {
        self.state.lock().is_known
    }

    pub(super) fn has_asked(&self) -> bool {
        self.has_asked.load(Ordering::Relaxed)
    }

    /// Records that the client has an authenticated user. The connection is never closed for another connection from now on.
    pub(super) fn identify(&self) {
        let mut state = self.state.lock();
        if !state.is_known {
            state.is_known = true;
            self.leave(&mut state);
        }
    }

    /// Records a request. The connection is not silent until the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        self.has_asked.store(true, Ordering::Relaxed);
        let mut state = self.state.lock();
        state.requests += 1;
        self.leave(&mut state);
        InFlight(Arc::clone(self))
    }

    fn leave(&self, state: &mut State) {
        if let Some(place) = state.place.take() {
            self.strangers.0.lock().connections.remove(&place);
        }
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        if let Some(place) = self.state.get_mut().place {
            self.strangers.0.lock().connections.remove(&place);
        }
    }
}

/// A request in flight of a connection.
#[derive(Debug)]
pub(super) struct InFlight(Arc<Stranger>);

impl Drop for InFlight {
    fn drop(&mut self) {
        let stranger = &self.0;
        let mut state = stranger.state.lock();
        state.requests -= 1;
        if state.requests == 0 && !state.is_known {
            state.place = Some(stranger.strangers.0.lock().add(&stranger.closed, Instant::now()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_closed(connection: &Stranger) -> bool {
        connection.closed.is_cancelled()
    }

    fn at_most(count: usize) -> Strangers {
        Strangers::new(StrangerLimits { patient: count, largest: count })
    }

    #[test]
    fn many_connections_at_once_have_time_to_begin() {
        let mut silent = Silent::new(StrangerLimits { patient: 2, largest: 4 });
        let connections: Vec<_> = (0..7).map(|_| CancellationToken::new()).collect();
        let start = Instant::now();
        let closed = || connections.iter().filter(|connection| connection.is_cancelled()).count();
        for connection in &connections[..4] {
            silent.add(connection, start);
        }
        assert_eq!(closed(), 0, "the connections are new");
        silent.add(&connections[4], start + PATIENCE / 2);
        assert_eq!(closed(), 1, "no more than the largest number");
        silent.add(&connections[5], start + PATIENCE);
        assert_eq!(closed(), 4, "the silence has lasted long enough");
        silent.add(&connections[6], start + PATIENCE);
        assert_eq!(closed(), 4, "the silence of the others is short");
    }

    #[test]
    fn a_further_connection_closes_the_connection_with_the_longest_silence() {
        let strangers = at_most(2);
        let (first, second) = (Arc::new(strangers.add()), Arc::new(strangers.add()));
        drop(first.begin());
        let third = strangers.add();
        assert!(is_closed(&second), "the first connection had a request");
        assert!(!is_closed(&first) && !is_closed(&third));
    }

    #[test]
    fn a_request_in_flight_and_a_user_keep_a_connection_open() {
        let strangers = at_most(1);
        let (busy, known) = (Arc::new(strangers.add()), strangers.add());
        assert!(is_closed(&busy), "one silent connection has a place");
        let busy = Arc::new(strangers.add());
        assert!(is_closed(&known));
        let in_flight = busy.begin();
        let known = Arc::new(strangers.add());
        known.identify();
        drop(known.begin());
        let silent = strangers.add();
        assert!(!is_closed(&busy) && !is_closed(&known) && !is_closed(&silent));
        drop(in_flight);
        assert!(is_closed(&silent), "the connection is silent again, and takes a place");
    }

    #[test]
    fn a_connection_that_ends_leaves_its_place() {
        let strangers = at_most(2);
        for _ in 0..10 {
            drop(strangers.add());
        }
        assert!(!strangers.close_one());
        let connection = strangers.add();
        assert!(strangers.close_one());
        assert!(is_closed(&connection));
    }
}
