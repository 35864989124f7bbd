//! The bounded event log of one resource. A watcher is a cursor into it.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Stored;

/// How many events a log keeps, and how many bytes of objects, whichever is reached first.
const MAX_EVENTS: usize = 8_192;
const MAX_BYTES: usize = 32 << 20;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// One committed write.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) rv: u64,
    pub(crate) change: Change,
    pub(crate) key: Arc<str>,
    /// The object after the write; for a deletion the last one, with the revision of its deletion.
    pub(crate) object: Arc<Stored>,
    /// The object before the write.
    pub(crate) old: Option<Arc<Stored>>,
}

impl Event {
    fn weight(&self) -> usize {
        self.object.json.len() + self.old.as_ref().map_or(0, |old| old.json.len())
    }
}

/// What a cursor finds beyond its place.
pub(crate) enum Tail {
    /// Events, oldest first; none if nothing happened since.
    Events(Vec<Arc<Event>>),
    /// The cursor has fallen off the log, whose oldest reachable revision is given.
    Expired(u64),
    /// The resource is no longer served.
    Closed,
}

/// The recent history of one resource.
pub(crate) struct Log {
    events: Mutex<Events>,
    changed: Notify,
}

struct Events {
    ring: VecDeque<Arc<Event>>,
    bytes: usize,
    /// Every event after this revision is in the ring.
    start: u64,
    closed: bool,
}

impl Log {
    pub(super) fn new(start: u64) -> Self {
        let events = Events { ring: VecDeque::new(), bytes: 0, start, closed: false };
        Self { events: Mutex::new(events), changed: Notify::new() }
    }

    pub(super) fn append(&self, event: Event) {
        let mut events = self.events.lock();
        events.bytes += event.weight();
        events.ring.push_back(Arc::new(event));
        while events.ring.len() > MAX_EVENTS || events.bytes > MAX_BYTES && events.ring.len() > 1 {
            if let Some(dropped) = events.ring.pop_front() {
                events.bytes -= dropped.weight();
                events.start = dropped.rv;
            }
        }
    }

    pub(super) fn wake(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn close(&self) {
        self.events.lock().closed = true;
        self.wake();
    }

    /// At most `limit` events after `cursor`.
    pub(crate) fn tail(&self, cursor: u64, limit: usize) -> Tail {
        let events = self.events.lock();
        if cursor < events.start {
            return if events.closed { Tail::Closed } else { Tail::Expired(events.start) };
        }
        let first = events.ring.partition_point(|event| event.rv <= cursor);
        if events.closed && first == events.ring.len() {
            return Tail::Closed;
        }
        Tail::Events(events.ring.iter().skip(first).take(limit).cloned().collect())
    }

    /// All events after `revision`, or `None` if the log does not reach back so far.
    pub(super) fn after(&self, revision: u64) -> Option<Vec<Arc<Event>>> {
        match self.tail(revision, usize::MAX) {
            Tail::Events(events) => Some(events),
            Tail::Expired(_) | Tail::Closed => None,
        }
    }

    /// Waits for the next event. Create the future before looking at the log, so that none is missed.
    pub(crate) fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Forgets all events up to `revision`, as a compaction does.
    pub(crate) fn compact(&self, revision: u64) {
        let mut events = self.events.lock();
        while events.ring.front().is_some_and(|event| event.rv <= revision) {
            if let Some(dropped) = events.ring.pop_front() {
                events.bytes -= dropped.weight();
            }
        }
        events.start = events.start.max(revision);
        drop(events);
        self.wake();
    }
}
