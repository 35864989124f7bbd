//! The connections of a listener without an authenticated user.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, WaitForCancellationFuture};

/// A limited number of silent connections without an authenticated user. Cheap to clone.
///
/// Anybody who reaches the port may open connections and say nothing. A further connection then closes the connection that has been
/// silent the longest, so that such clients take neither all file descriptors nor the place of other clients.
#[derive(Clone, Debug)]
pub(super) struct Strangers(Arc<Mutex<Silent>>);

#[derive(Debug)]
struct Silent {
    limit: usize,
    /// The number of the next place.
    next: u64,
    /// The silent connections, with the longest silence first.
    connections: BTreeMap<u64, CancellationToken>,
}

impl Silent {
    fn add(&mut self, connection: &CancellationToken) -> u64 {
        let place = self.next;
        self.next += 1;
        self.connections.insert(place, connection.clone());
        while self.connections.len() > self.limit {
            self.close_one();
        }
        place
    }

    fn close_one(&mut self) -> bool {
        let Some((_, connection)) = self.connections.pop_first() else { return false };
        connection.cancel();
        true
    }
}

impl Strangers {
    /// Permits `limit` silent connections, at least 1.
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(Mutex::new(Silent { limit: limit.max(1), next: 0, connections: BTreeMap::new() })))
    }

    /// Adds a connection. May close another connection.
    pub(super) fn add(&self) -> Stranger {
        let closed = CancellationToken::new();
        let place = self.0.lock().add(&closed);
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
            state.place = Some(stranger.strangers.0.lock().add(&stranger.closed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_closed(connection: &Stranger) -> bool {
        connection.closed.is_cancelled()
    }

    #[test]
    fn a_further_connection_closes_the_connection_with_the_longest_silence() {
        let strangers = Strangers::new(2);
        let (first, second) = (Arc::new(strangers.add()), Arc::new(strangers.add()));
        drop(first.begin());
        let third = strangers.add();
        assert!(is_closed(&second), "the first connection had a request");
        assert!(!is_closed(&first) && !is_closed(&third));
    }

    #[test]
    fn a_request_in_flight_and_a_user_keep_a_connection_open() {
        let strangers = Strangers::new(1);
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
        let strangers = Strangers::new(2);
        for _ in 0..10 {
            drop(strangers.add());
        }
        assert!(!strangers.close_one());
        let connection = strangers.add();
        assert!(strangers.close_one());
        assert!(is_closed(&connection));
    }
}
