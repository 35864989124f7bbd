//! Ready slots in plain data: a FIFO lane for each priority, and ageing across them.

use crate::LOW_PRIORITY;
use crate::slot::{Place, Ticket};
use crate::sync::Arc;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// Room for so many entries that a lane keeps when it has run dry.
const SPARE: usize = 1024;

/// A lane for each priority. Most queues see only the two that the runtime itself uses.
pub(crate) struct Lanes<K> {
    normal: Lane<K>,
    low: Lane<K>,
    /// In descending order of priority.
    others: Vec<Lane<K>>,
}

struct Lane<K> {
    priority: i32,
    entries: VecDeque<Entry<K>>,
    /// Entries that a raise made void, here or in the lane that this one is moved to, less those come across.
    void: i64,
}

struct Entry<K> {
    place: Arc<Place<K>>,
    ticket: Ticket,
}

/// Which priorities a set of lanes has entries of: 0, the low one, or any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds(u8);

impl Kinds {
    const NORMAL: u8 = 0b001;
    const LOW: u8 = 0b010;
    const OTHERS: u8 = 0b100;

    #[inline]
    pub(crate) fn of(priority: i32) -> Self {
        Self(match priority {
            0 => Self::NORMAL,
            LOW_PRIORITY => Self::LOW,
            _ => Self::OTHERS,
        })
    }

    #[inline]
    pub(crate) fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    #[inline]
    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    #[inline]
    fn has(self, any_of: u8) -> bool {
        self.0 & any_of != 0
    }

    #[inline]
    pub(crate) fn with(self, more: Self) -> Self {
        Self(self.0 | more.0)
    }
}

/// Names one of the lanes.
#[derive(Clone, Copy)]
enum At {
    Normal,
    Low,
    Other(usize),
}

impl<K> Lanes<K> {
    pub(crate) fn new() -> Self {
        Self { normal: Lane::new(0), low: Lane::new(LOW_PRIORITY), others: Vec::new() }
    }

    #[inline]
    pub(crate) fn push(&mut self, priority: i32, place: Arc<Place<K>>, ticket: Ticket) {
        self.lane(priority).entries.push_back(Entry { place, ticket });
    }

    /// Notes that an entry of `priority` is void, wherever it is.
    pub(crate) fn void(&mut self, priority: i32) {
        self.lane(priority).void += 1;
    }

    /// The lane of `priority`, made if there is none.
    #[inline]
    fn lane(&mut self, priority: i32) -> &mut Lane<K> {
        match priority {
            0 => &mut self.normal,
            LOW_PRIORITY => &mut self.low,
            _ => self.other(priority),
        }
    }

    fn other(&mut self, priority: i32) -> &mut Lane<K> {
        let found = self.others.binary_search_by_key(&Reverse(priority), |lane| Reverse(lane.priority));
        let at = found.unwrap_or_else(|at| {
            self.others.insert(at, Lane::new(priority));
            at
        });
        &mut self.others[at]
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.normal.is_empty() && self.low.is_empty() && self.others.iter().all(Lane::is_empty)
    }

    /// Whether entries of these kinds could change which one is next.
    #[inline]
    pub(crate) fn lacks(&self, kinds: Kinds) -> bool {
        let normal = if self.normal.is_empty() { Kinds::NORMAL } else { 0 };
        let low = if self.low.is_empty() { Kinds::LOW } else { 0 };
        kinds.has(normal | low | Kinds::OTHERS)
    }

    /// Puts the entries of `newer`, of which there are `kinds`, behind its own.
    #[inline]
    pub(crate) fn append(&mut self, newer: &mut Self, kinds: Kinds) {
        if kinds.has(Kinds::NORMAL) {
            self.normal.append(&mut newer.normal);
        }
        if kinds.has(Kinds::LOW) {
            self.low.append(&mut newer.low);
        }
        if kinds.has(Kinds::OTHERS) {
            self.append_others(newer);
        }
    }

    #[cold]
    fn append_others(&mut self, newer: &mut Self) {
        for mut lane in newer.others.drain(..) {
            self.other(lane.priority).append(&mut lane);
        }
        self.others.retain(|lane| !lane.is_spent());
    }

    /// Takes the entry whose turn it is: its slot, now claimed, and its priority.
    ///
    /// One in `ageing` turns goes to a lower lane when a higher one has work too, each of them in turn. Every call with
    /// a choice is a `turn`. `None` when a lane has run dry: then another one may have taken its place.
    #[inline]
    pub(crate) fn take(&mut self, turn: &mut Turn) -> Option<(Arc<Place<K>>, i32)> {
        if self.low.is_empty() && self.others.is_empty() {
            return self.normal.take();
        }
        self.choose(turn).and_then(|at| self.take_at(at))
    }

    fn choose(&self, turn: &mut Turn) -> Option<At> {
        let mut ready = self.order().filter(|&at| !self.at(at).is_empty());
        let highest = ready.next()?;
        let lower: usize = ready.clone().count();
        if lower == 0 {
            return Some(highest);
        }
        turn.aged().map_or(Some(highest), |nth| ready.nth(nth % lower))
    }

    /// All lanes, in descending order of priority.
    fn order(&self) -> impl Iterator<Item = At> + Clone + use<K> {
        let above_normal = self.others.partition_point(|lane| lane.priority > 0);
        let above_low = self.others.partition_point(|lane| lane.priority > LOW_PRIORITY);
        let others = |range: std::ops::Range<usize>| range.map(At::Other);
        others(0..above_normal)
            .chain([At::Normal])
            .chain(others(above_normal..above_low))
            .chain([At::Low])
            .chain(others(above_low..self.others.len()))
    }

    fn at(&self, at: At) -> &Lane<K> {
        match at {
            At::Normal => &self.normal,
            At::Low => &self.low,
            At::Other(nth) => &self.others[nth],
        }
    }

    fn take_at(&mut self, at: At) -> Option<(Arc<Place<K>>, i32)> {
        match at {
            At::Normal => self.normal.take(),
            At::Low => self.low.take(),
            At::Other(nth) => {
                let lane = &mut self.others[nth];
                let taken = lane.take();
                // Priorities come and go; what they leave behind must not add up.
                if lane.is_spent() {
                    self.others.remove(nth);
                }
                taken
            }
        }
    }

    /// How many keys are ready, by priority in descending order; void entries are counted out, wherever they lie.
    pub(crate) fn depths(&self) -> impl Iterator<Item = (i32, i64)> {
        self.order().map(|at| self.at(at)).map(|lane| (lane.priority, lane.depth()))
    }

    pub(crate) fn depth(&self) -> i64 {
        self.depths().map(|(_, depth)| depth).sum()
    }
}

impl<K> Lane<K> {
    fn new(priority: i32) -> Self {
        Self { priority, entries: VecDeque::new(), void: 0 }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Nothing is known of it that another one would not know.
    fn is_spent(&self) -> bool {
        self.entries.is_empty() && self.void == 0
    }

    /// The first entry that is still good, claimed.
    #[inline]
    fn take(&mut self) -> Option<(Arc<Place<K>>, i32)> {
        while let Some(Entry { place, ticket }) = self.entries.pop_front() {
            if place.claim(self.priority, ticket) {
                return Some((place, self.priority));
            }
            self.void -= 1;
        }
        None
    }

    #[inline]
    fn append(&mut self, newer: &mut Self) {
        self.void += std::mem::take(&mut newer.void);
        if !self.is_empty() {
            return self.entries.append(&mut newer.entries);
        }
        std::mem::swap(&mut self.entries, &mut newer.entries);
        // What a burst needed is given back when the burst is over.
        if newer.entries.capacity() > SPARE && newer.entries.capacity() / 8 > self.entries.len() {
            newer.entries.shrink_to(SPARE);
        }
    }

    fn depth(&self) -> i64 {
        self.entries.len() as i64 - self.void
    }
}

/// Whose turn it is: mostly the highest's, every now and then a lower one's.
pub(crate) struct Turn {
    ageing: u32,
    number: u32,
    /// There has been a choice in this turn.
    counted: bool,
}

impl Turn {
    pub(crate) fn new(ageing: u32) -> Self {
        Self { ageing, number: 0, counted: false }
    }

    /// If there is a choice now, this is another turn.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.counted = false;
    }

    /// Which of the lower lanes has its turn, if it is not the highest's. The same for the whole of a turn.
    fn aged(&mut self) -> Option<usize> {
        if !std::mem::replace(&mut self.counted, true) {
            self.number = self.number.wrapping_add(1);
        }
        self.number.is_multiple_of(self.ageing).then(|| (self.number / self.ageing).wrapping_sub(1) as usize)
    }
}
