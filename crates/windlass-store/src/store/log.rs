//! The recent events of a resource. A watch is a cursor in the log.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Stored;

/// The change of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The object was created.
    Added,
    /// The object was updated.
    Modified,
    /// The object was deleted.
    Deleted,
}

/// A committed write.
#[derive(Debug)]
pub struct Event {
    /// The revision of the write.
    pub rv: u64,
    /// The kind of the write.
    pub change: Change,
    /// The key of the object.
    pub key: Arc<str>,
    /// The object after the write; for a deletion the last object, with the revision of the deletion.
    pub object: Arc<Stored>,
    /// The object before the write.
    pub old: Option<Arc<Stored>>,
}

impl Event {
    /// Returns an estimate of the memory that history alone keeps for this event. An object that is still
    /// stored, or that a later event replaces, is not counted here.
    pub(super) fn weight(&self) -> usize {
        const OVERHEAD: usize = 160;
        let last = if self.change == Change::Deleted { self.object.weight() } else { 0 };
        OVERHEAD + last + self.old.as_ref().map_or(0, |old| old.weight())
    }
}

/// The result of a read after a cursor.
pub enum Tail {
    /// Events, oldest first; empty if no event has happened since.
    Events(Vec<Arc<Event>>),
    /// The events after the cursor are gone; the oldest revision that is still reachable is given.
    Expired(u64),
    /// The resource is no longer served.
    Closed,
}

/// A log that a watch follows.
pub struct Watched(Arc<Log>);

impl Watched {
    /// Returns the log.
    pub fn log(&self) -> &Arc<Log> {
        &self.0
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.0.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The recent history of a resource.
pub struct Log {
    events: Mutex<Events>,
    changed: Notify,
    /// The number of watches.
    watches: AtomicUsize,
    /// The last event as a line of JSON: most watches are at the same position, and need the same bytes.
    line: Mutex<Option<Frame>>,
    /// The recent events in protobuf: an event is encoded once, also for watches that lag behind.
    messages: Mutex<Messages>,
}

/// Events in protobuf, sorted by revision.
#[derive(Default)]
struct Messages {
    frames: VecDeque<Frame>,
    /// The size of all frames in bytes.
    size: usize,
}

impl Messages {
    /// The largest size of all frames in bytes. A frame that is larger is kept alone.
    const MAX_SIZE: usize = 512 << 10;
    /// The most forms of a change that are kept. Watches in several versions, or with selectors, see a change differently.
    const MAX_FORMS: usize = 4;

    fn insert(&mut self, at: usize, frame: Frame) {
        self.size += frame.bytes.len();
        self.frames.insert(at, frame);
        while self.size > Self::MAX_SIZE && self.frames.len() > 1 {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        let first = self.frames.pop_front();
        self.size -= first.map_or(self.size, |frame| frame.bytes.len());
    }
}

struct Frame {
    change: &'static str,
    object: Arc<Stored>,
    bytes: Bytes,
}

impl Frame {
    fn is_of(&self, change: &str, object: &Arc<Stored>) -> bool {
        self.change == change && Arc::ptr_eq(&self.object, object)
    }
}

struct Events {
    ring: VecDeque<Arc<Event>>,
    /// Every event after this revision is in the ring.
    start: u64,
    closed: bool,
}

impl Events {
    /// Returns the place of the first event after `cursor`.
    fn first_after(&self, cursor: u64) -> usize {
        /// Most cursors are near the end: check the last `NEAR` events before a binary search.
        const NEAR: usize = 4;
        let newest = self.ring.len();
        let near = newest.saturating_sub(NEAR);
        match self.ring.get(near) {
            Some(event) if event.rv <= cursor => {
                near + self.ring.range(near..).take_while(|event| event.rv <= cursor).count()
            }
            _ => self.ring.partition_point(|event| event.rv <= cursor),
        }
    }
}

impl Log {
    pub(super) fn new(start: u64) -> Self {
        let events = Events { ring: VecDeque::new(), start, closed: false };
        Self {
            events: Mutex::new(events),
            changed: Notify::new(),
            watches: AtomicUsize::new(0),
            line: Mutex::default(),
            messages: Mutex::default(),
        }
    }

    pub(super) fn append(&self, event: Event) {
        self.events.lock().ring.push_back(Arc::new(event));
    }

    /// Wakes the watches that wait for an event.
    pub fn wake(&self) {
        self.changed.notify_waiters();
    }

    pub(super) fn close(&self) {
        self.events.lock().closed = true;
        self.wake();
    }

    /// Returns at most `limit` events after `cursor`.
    pub fn tail(&self, cursor: u64, limit: usize) -> Tail {
        let events = self.events.lock();
        if cursor < events.start {
            return if events.closed { Tail::Closed } else { Tail::Expired(events.start) };
        }
        let first = events.first_after(cursor);
        if events.closed && first == events.ring.len() {
            return Tail::Closed;
        }
        Tail::Events(events.ring.range(first..).take(limit).cloned().collect())
    }

    /// Returns the revision after which the log has all events.
    pub(super) fn start(&self) -> u64 {
        self.events.lock().start
    }

    /// Returns all events after `revision`, or `None` if the log does not reach back that far.
    pub(super) fn after(&self, revision: u64) -> Option<Vec<Arc<Event>>> {
        match self.tail(revision, usize::MAX) {
            Tail::Events(events) => Some(events),
            Tail::Expired(_) | Tail::Closed => None,
        }
    }

    /// Returns whether there are so many watches that the writer should yield to the watches.
    pub(super) fn is_crowded(&self) -> bool {
        const CROWD: usize = 16;
        self.watches.load(Ordering::Relaxed) >= CROWD
    }

    /// Counts a watch until the guard is dropped.
    pub fn watched(self: &Arc<Self>) -> Watched {
        self.watches.fetch_add(1, Ordering::Relaxed);
        Watched(Arc::clone(self))
    }

    /// Waits for the next event. Create the future before looking at the log, to miss no event.
    pub fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }

    /// Returns the line of an event. Calls `make` only if no other watch has just needed the same line.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn line<E>(
        &self,
        change: &'static str,
        object: &Arc<Stored>,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        let mut last = self.line.lock();
        if let Some(frame) = &*last
            && frame.is_of(change, object)
        {
            return Ok(frame.bytes.clone());
        }
        let bytes = make()?;
        *last = Some(Frame { change, object: Arc::clone(object), bytes: bytes.clone() });
        Ok(bytes)
    }

    /// Returns the protobuf message of an event. Calls `make` only if no other watch has lately needed the same message.
    ///
    /// # Errors
    /// The error of `make`.
    pub fn message<E>(
        &self,
        change: &'static str,
        object: &Arc<Stored>,
        make: impl FnOnce() -> Result<Bytes, E>,
    ) -> Result<Bytes, E> {
        let mut messages = self.messages.lock();
        let first = messages.frames.partition_point(|frame| frame.object.rv < object.rv);
        let forms = messages.frames.range(first..).take_while(|frame| frame.object.rv == object.rv);
        let mut count = 0;
        for frame in forms {
            if frame.is_of(change, object) {
                return Ok(frame.bytes.clone());
            }
            count += 1;
        }
        let bytes = make()?;
        // No other watch can need the message of an object that one watch has made for itself.
        let is_shared = Arc::strong_count(object) > 1;
        if is_shared && count < Messages::MAX_FORMS {
            let frame = Frame { change, object: Arc::clone(object), bytes: bytes.clone() };
            messages.insert(first + count, frame);
        }
        Ok(bytes)
    }

    /// Forgets all events up to `revision`.
    pub(super) fn forget_until(&self, revision: u64) {
        let mut messages = self.messages.lock();
        while messages.frames.front().is_some_and(|frame| frame.object.rv <= revision) {
            messages.forget_first();
        }
        drop(messages);
        let mut events = self.events.lock();
        while events.ring.front().is_some_and(|event| event.rv <= revision) {
            events.ring.pop_front();
        }
        if events.ring.capacity() > 64 && events.ring.len() < events.ring.capacity() / 4 {
            let room = events.ring.len() * 2;
            events.ring.shrink_to(room);
        }
        events.start = events.start.max(revision);
    }
}
