//! Ready slots: a FIFO lane for each priority, and ageing across them.

use crate::slot::{Place, Ticket};
use crate::sync::{Arc, AtomicBool, Fifo, Ordering, Padded, PlainI64, PlainU32, RwLock};
use crate::{Key, LOW_PRIORITY};
use std::cmp::Reverse;

/// Lanes beside the two usual ones that may lie empty before they are cleared away.
const SPARE_LANES: usize = 32;

/// The lanes of a queue.
///
/// The two priorities that the runtime itself uses, 0 and [`LOW_PRIORITY`], are reached without any lock. A queue that
/// sees others keeps a lane for each, behind a lock that is taken for writing only when a priority is new.
pub(crate) struct Lanes<K> {
    normal: Padded<Lane<K>>,
    low: Padded<Lane<K>>,
    /// In descending order of priority.
    others: RwLock<Vec<Arc<Lane<K>>>>,
    has_others: AtomicBool,
    ageing: u32,
    turn: PlainU32,
}

struct Lane<K> {
    priority: i32,
    entries: Fifo<Entry<K>>,
    /// Entries that a raise made void and nobody has come across yet.
    void: PlainI64,
}

struct Entry<K> {
    place: Arc<Place<K>>,
    ticket: Ticket,
}

impl<K: Key> Lanes<K> {
    /// One in `ageing` turns goes to a lower lane when a higher one has work too.
    pub(crate) fn new(ageing: u32) -> Self {
        Self {
            normal: Padded(Lane::new(0)),
            low: Padded(Lane::new(LOW_PRIORITY)),
            others: RwLock::new(Vec::new()),
            has_others: AtomicBool::new(false),
            ageing,
            turn: PlainU32::new(0),
        }
    }

    pub(crate) fn push(&self, priority: i32, place: Arc<Place<K>>, ticket: Ticket) {
        let entry = Entry { place, ticket };
        match priority {
            0 => self.normal.entries.push(entry),
            LOW_PRIORITY => self.low.entries.push(entry),
            _ => self.push_other(priority, entry),
        }
    }

    fn push_other(&self, priority: i32, entry: Entry<K>) {
        let find =
            |lanes: &[Arc<Lane<K>>]| lanes.binary_search_by_key(&Reverse(priority), |l| Reverse(l.priority));
        {
            let lanes = self.others.read();
            if let Ok(at) = find(&lanes) {
                return lanes[at].entries.push(entry);
            }
        }
        let mut lanes = self.others.write();
        if lanes.len() >= SPARE_LANES {
            lanes.retain(|lane| !lane.entries.is_empty());
        }
        let at = find(&lanes).unwrap_or_else(|at| {
            lanes.insert(at, Arc::new(Lane::new(priority)));
            at
        });
        lanes[at].entries.push(entry);
        self.has_others.store(true, Ordering::Release);
    }

    /// Notes that an entry in the lane of `priority` is void.
    pub(crate) fn void(&self, priority: i32) {
        match priority {
            0 => self.normal.add_void(1),
            LOW_PRIORITY => self.low.add_void(1),
            _ => {
                if let Some(lane) = self.others.read().iter().find(|lane| lane.priority == priority) {
                    lane.add_void(1);
                }
            }
        }
    }

    /// The slot whose turn it is, now claimed, and its priority.
    pub(crate) fn pop(&self) -> Option<(Arc<Place<K>>, i32)> {
        if !self.has_others.load(Ordering::Acquire) {
            return if self.low.entries.is_empty() {
                self.normal.take().or_else(|| self.low.take())
            } else {
                self.pick(&[&*self.normal, &*self.low])
            };
        }
        let others = self.others.read();
        self.pick(&self.ordered(&others))
    }

    /// All lanes, in descending order of priority.
    fn ordered<'a>(&'a self, others: &'a [Arc<Lane<K>>]) -> Vec<&'a Lane<K>> {
        let mut lanes: Vec<&Lane<K>> = others.iter().map(|lane| &**lane).collect();
        for usual in [&*self.normal, &*self.low] {
            let at = lanes.partition_point(|lane| lane.priority > usual.priority);
            lanes.insert(at, usual);
        }
        lanes
    }

    fn pick(&self, lanes: &[&Lane<K>]) -> Option<(Arc<Place<K>>, i32)> {
        let first = lanes.iter().position(|lane| !lane.entries.is_empty())?;
        let (higher, lower) = lanes[first..].split_first()?;
        if lower.iter().any(|lane| !lane.entries.is_empty())
            && let Some(aged) = self.aged(lower)
        {
            return Some(aged);
        }
        higher.take().or_else(|| lower.iter().find_map(|lane| lane.take()))
    }

    /// Every now and then it is a lower lane's turn, each of them in turn.
    fn aged(&self, lower: &[&Lane<K>]) -> Option<(Arc<Place<K>>, i32)> {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        if turn % self.ageing != self.ageing - 1 {
            return None;
        }
        let start = (turn / self.ageing) as usize % lower.len();
        lower[start..].iter().chain(&lower[..start]).find_map(|lane| lane.take())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.normal.entries.is_empty()
            && self.low.entries.is_empty()
            && (!self.has_others.load(Ordering::Acquire)
                || self.others.read().iter().all(|lane| lane.entries.is_empty()))
    }

    /// How many keys are ready, by priority in descending order; priorities without any are left out, but for 0.
    pub(crate) fn depths(&self) -> Vec<(i32, usize)> {
        let others = self.others.read();
        let depths = self.ordered(&others).into_iter().map(|lane| (lane.priority, lane.len()));
        depths.filter(|&(priority, depth)| depth > 0 || priority == 0).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.normal.len()
            + self.low.len()
            + if self.has_others.load(Ordering::Acquire) {
                self.others.read().iter().map(|lane| lane.len()).sum()
            } else {
                0
            }
    }
}

impl<K> Lane<K> {
    fn new(priority: i32) -> Self {
        Self { priority, entries: Fifo::new(), void: PlainI64::new(0) }
    }

    /// The first entry that is still good, claimed.
    fn take(&self) -> Option<(Arc<Place<K>>, i32)> {
        while let Some(Entry { place, ticket }) = self.entries.pop() {
            match place.claim(ticket) {
                Some(priority) => return Some((place, priority)),
                None => self.add_void(-1),
            }
        }
        None
    }

    /// A void entry may be met before whoever voided it has counted it: the count may be negative for a moment.
    fn add_void(&self, by: i64) {
        self.void.fetch_add(by, Ordering::Relaxed);
    }

    fn len(&self) -> usize {
        let void = self.void.load(Ordering::Relaxed);
        self.entries.len().saturating_sub(usize::try_from(void).unwrap_or(0))
    }
}
