//! The keys that are ready: adders fill one side, workers empty the other.

use crate::lanes::{Kinds, Lanes, Turn};
use crate::slot::{Added, Place, Ticket};
use crate::sync::{Arc, AtomicBool, Mutex, Ordering, Padded, PlainU8};

/// A queue of two halves, each behind a lock of its own: adders put entries into the one, workers take from the other,
/// and whoever finds that one empty fetches all that has come in. So adders and workers do not touch the same memory
/// for each key, which on most machines costs more than everything else.
///
/// The order is strict: a priority's entries come out as they went in, and a higher priority is seen at once.
/// Whoever takes both locks takes the workers' first.
///
/// Every add that makes a key ready, or due again, is decided under the inbox's lock, and so is the end of all adds: one
/// that comes before the end is seen by a worker that has seen the end, and one that comes after it changes nothing.
pub(crate) struct Ready<K> {
    inbox: Padded<Mutex<Inbox<K>>>,
    /// What the inbox holds, to be looked at without its lock. It changes rarely: not with each entry.
    incoming: Padded<PlainU8>,
    /// No more adds. Written under the inbox's lock.
    closed: AtomicBool,
    outbox: Padded<Mutex<Outbox<K>>>,
}

struct Inbox<K> {
    lanes: Lanes<K>,
    /// Keys that became ready by an add; a raise does not count.
    added: u64,
    /// Adds of keys that were being worked on.
    added_during_work: u64,
    /// Keys that became ready when the work on them ended.
    again: u64,
}

struct Outbox<K> {
    lanes: Lanes<K>,
    turn: Turn,
}

/// A key that was taken, claimed.
pub(crate) struct Taken<K> {
    pub(crate) place: Arc<Place<K>>,
    pub(crate) priority: i32,
    /// There is at least one more entry, which may be void.
    pub(crate) more: bool,
}

impl<K> Ready<K> {
    pub(crate) fn new(ageing: u32) -> Self {
        Self {
            inbox: Padded(Mutex::new(Inbox {
                lanes: Lanes::new(),
                added: 0,
                added_during_work: 0,
                again: 0,
            })),
            incoming: Padded(PlainU8::new(0)),
            closed: AtomicBool::new(false),
            outbox: Padded(Mutex::new(Outbox { lanes: Lanes::new(), turn: Turn::new(ageing) })),
        }
    }

    /// Lets `add` change the key's state, and puts the key where it then belongs. After the end nothing changes, and the
    /// add counts as merged. `None` is what `add` says.
    #[inline]
    pub(crate) fn admit(
        &self,
        place: &Arc<Place<K>>,
        add: impl FnOnce(&Place<K>) -> Option<Added>,
    ) -> Option<Added> {
        let mut inbox = self.inbox.lock();
        if self.is_closed() {
            return Some(Added::Merged);
        }
        let added = add(place)?;
        match added {
            Added::Ready { priority, ticket } => {
                inbox.added += 1;
                self.put(&mut inbox.lanes, priority, Arc::clone(place), ticket);
            }
            Added::Raised { from, priority, ticket } => {
                // The entry in the lane of `from` is void.
                inbox.lanes.void(from);
                self.announce(from);
                self.put(&mut inbox.lanes, priority, Arc::clone(place), ticket);
            }
            Added::AfterDone => inbox.added_during_work += 1,
            Added::Merged => {}
        }
        Some(added)
    }

    /// No more adds. A worker that sees this afterwards, and then finds nothing, has seen all.
    pub(crate) fn close(&self) {
        let _inbox = self.inbox.lock();
        self.closed.store(true, Ordering::SeqCst);
    }

    /// [`close`](Self::close) has been called.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// The work on a key has ended, and the key was added during it.
    pub(crate) fn push_again(&self, priority: i32, place: Arc<Place<K>>, ticket: Ticket) {
        let mut inbox = self.inbox.lock();
        inbox.again += 1;
        self.put(&mut inbox.lanes, priority, place, ticket);
    }

    #[inline]
    fn put(&self, lanes: &mut Lanes<K>, priority: i32, place: Arc<Place<K>>, ticket: Ticket) {
        lanes.push(priority, place, ticket);
        self.announce(priority);
    }

    /// The inbox holds something of this priority. The caller holds its lock.
    #[inline]
    fn announce(&self, priority: i32) {
        let before = Kinds::from_bits(self.incoming.load(Ordering::Relaxed));
        let after = before.with(Kinds::of(priority));
        if after != before {
            self.incoming.store(after.bits(), Ordering::Relaxed);
        }
    }

    /// The key whose turn it is, claimed. When it says that there is none, or no more, it has looked under both locks:
    /// whoever adds one afterwards sees all that the caller did before.
    #[inline]
    pub(crate) fn take(&self) -> Option<Taken<K>> {
        let mut outbox = self.outbox.lock();
        let outbox = &mut *outbox;
        outbox.turn.begin();
        let mut fetched = false;
        let (place, priority) = loop {
            if self.is_to_fetch(&outbox.lanes) {
                self.fetch(&mut outbox.lanes);
                fetched = true;
            }
            if let Some(taken) = outbox.lanes.take(&mut outbox.turn) {
                break taken;
            }
            if fetched && outbox.lanes.is_empty() {
                return None;
            }
        };
        if outbox.lanes.is_empty() && !fetched {
            self.fetch(&mut outbox.lanes);
        }
        Some(Taken { place, priority, more: !outbox.lanes.is_empty() })
    }

    #[inline]
    fn is_to_fetch(&self, lanes: &Lanes<K>) -> bool {
        lanes.is_empty() || lanes.lacks(Kinds::from_bits(self.incoming.load(Ordering::Relaxed)))
    }

    #[inline]
    fn fetch(&self, lanes: &mut Lanes<K>) {
        let mut inbox = self.inbox.lock();
        // Only who holds the lock writes it, so that under the lock it is exact.
        let kinds = Kinds::from_bits(self.incoming.load(Ordering::Relaxed));
        if kinds != Kinds::default() {
            lanes.append(&mut inbox.lanes, kinds);
            self.incoming.store(0, Ordering::Relaxed);
        }
    }

    /// How often a key has become ready, one way or the other.
    pub(crate) fn entered(&self) -> u64 {
        let inbox = self.inbox.lock();
        inbox.added + inbox.again
    }

    /// How many adds made a key ready, or due again after the work on it.
    pub(crate) fn added(&self) -> u64 {
        let inbox = self.inbox.lock();
        inbox.added + inbox.added_during_work
    }

    /// How many keys are ready.
    pub(crate) fn len(&self) -> usize {
        let outbox = self.outbox.lock();
        let depth = outbox.lanes.depth() + self.inbox.lock().lanes.depth();
        usize::try_from(depth).unwrap_or(0)
    }

    /// How many keys are ready, by priority in descending order; priorities without any are left out, but for 0.
    pub(crate) fn depths(&self) -> Vec<(i32, usize)> {
        let mut outbox = self.outbox.lock();
        self.fetch(&mut outbox.lanes);
        let depths =
            outbox.lanes.depths().map(|(priority, depth)| (priority, usize::try_from(depth).unwrap_or(0)));
        depths.filter(|&(priority, depth)| depth > 0 || priority == 0).collect()
    }
}
