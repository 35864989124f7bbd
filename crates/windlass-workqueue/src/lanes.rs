//! Ready keys in plain data: a FIFO lane for each priority, and ageing across lanes.

use crate::LOW_PRIORITY;
use crate::key_state::{KeyState, Version};
use crate::sync::Arc;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// The capacity that an empty lane keeps.
const KEPT_CAPACITY: usize = 1024;

/// A lane for each priority. Most queues use only the two priorities of the runtime.
pub(crate) struct Lanes<K> {
    normal: Lane<K>,
    low: Lane<K>,
    /// In descending order of priority.
    others: Vec<Lane<K>>,
}

struct Lane<K> {
    priority: i32,
    entries: VecDeque<Entry<K>>,
    /// The number of entries of this priority that a raise made stale, minus the dropped entries. Negative in
    /// a set of lanes that dropped an entry which was counted in the other set.
    stale: i64,
}

/// A ready key. The entry is stale if `version` is no longer the key's current version.
struct Entry<K> {
    state: Arc<KeyState<K>>,
    version: Version,
}

/// The lanes with entries: priority 0, [`LOW_PRIORITY`], or any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LaneSet(u8);

impl LaneSet {
    const NORMAL: u8 = 0b001;
    const LOW: u8 = 0b010;
    const OTHERS: u8 = 0b100;

    /// Returns the set that contains only the lane of `priority`.
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
    fn intersects(self, bits: u8) -> bool {
        self.0 & bits != 0
    }

    #[inline]
    pub(crate) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Identifies a lane.
#[derive(Clone, Copy)]
enum LaneId {
    Normal,
    Low,
    Other(usize),
}

impl<K> Lanes<K> {
    pub(crate) fn new() -> Self {
        Self { normal: Lane::new(0), low: Lane::new(LOW_PRIORITY), others: Vec::new() }
    }

    #[inline]
    pub(crate) fn push(&mut self, priority: i32, state: Arc<KeyState<K>>, version: Version) {
        self.lane_of(priority).entries.push_back(Entry { state, version });
    }

    /// Counts an entry of `priority` as stale, in either set of lanes.
    pub(crate) fn count_stale(&mut self, priority: i32) {
        self.lane_of(priority).stale += 1;
    }

    /// Returns the lane of `priority`. Creates a missing lane.
    #[inline]
    fn lane_of(&mut self, priority: i32) -> &mut Lane<K> {
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

    /// Returns whether new entries in `lanes` could change the choice of the next entry.
    #[inline]
    pub(crate) fn depend_on(&self, lanes: LaneSet) -> bool {
        let normal = if self.normal.is_empty() { LaneSet::NORMAL } else { 0 };
        let low = if self.low.is_empty() { LaneSet::LOW } else { 0 };
        lanes.intersects(normal | low | LaneSet::OTHERS)
    }

    /// Moves the entries of `newer` to the ends of the lanes in `lanes`. All entries of `newer` are in these
    /// lanes.
    #[inline]
    pub(crate) fn append(&mut self, newer: &mut Self, lanes: LaneSet) {
        if lanes.intersects(LaneSet::NORMAL) {
            self.normal.append(&mut newer.normal);
        }
        if lanes.intersects(LaneSet::LOW) {
            self.low.append(&mut newer.low);
        }
        if lanes.intersects(LaneSet::OTHERS) {
            self.append_others(newer);
        }
    }

    #[cold]
    fn append_others(&mut self, newer: &mut Self) {
        for mut lane in newer.others.drain(..) {
            self.other(lane.priority).append(&mut lane);
        }
        self.others.retain(|lane| !lane.is_unused());
    }

    /// Claims the next key. Returns the state and priority of the key, or `None` if the chosen lane held only
    /// stale entries: the caller then tries again, because another lane may be next.
    #[inline]
    pub(crate) fn pop(&mut self, ageing: &mut Ageing) -> Option<(Arc<KeyState<K>>, i32)> {
        if self.low.is_empty() && self.others.is_empty() {
            return self.normal.pop();
        }
        self.choose(ageing).and_then(|id| self.pop_from(id))
    }

    fn choose(&self, ageing: &mut Ageing) -> Option<LaneId> {
        let mut ready = self.ids().filter(|&id| !self.lane(id).is_empty());
        let highest = ready.next()?;
        let lower: usize = ready.clone().count();
        if lower == 0 {
            return Some(highest);
        }
        ageing.choose_lower().map_or(Some(highest), |nth| ready.nth(nth % lower))
    }

    /// Returns all lanes in descending order of priority.
    fn ids(&self) -> impl Iterator<Item = LaneId> + Clone + use<K> {
        let above_normal = self.others.partition_point(|lane| lane.priority > 0);
        let above_low = self.others.partition_point(|lane| lane.priority > LOW_PRIORITY);
        let others = |range: std::ops::Range<usize>| range.map(LaneId::Other);
        others(0..above_normal)
            .chain([LaneId::Normal])
            .chain(others(above_normal..above_low))
            .chain([LaneId::Low])
            .chain(others(above_low..self.others.len()))
    }

    fn lane(&self, id: LaneId) -> &Lane<K> {
        match id {
            LaneId::Normal => &self.normal,
            LaneId::Low => &self.low,
            LaneId::Other(nth) => &self.others[nth],
        }
    }

    fn pop_from(&mut self, id: LaneId) -> Option<(Arc<KeyState<K>>, i32)> {
        match id {
            LaneId::Normal => self.normal.pop(),
            LaneId::Low => self.low.pop(),
            LaneId::Other(nth) => {
                let lane = &mut self.others[nth];
                let popped = lane.pop();
                // Lanes of priorities that are used once must not accumulate.
                if lane.is_unused() {
                    self.others.remove(nth);
                }
                popped
            }
        }
    }

    /// Returns the number of ready keys by priority, in descending order of priority. The sum over both sets of lanes is
    /// exact; in one set, stale entries of the other may be deducted.
    pub(crate) fn depths(&self) -> impl Iterator<Item = (i32, i64)> {
        self.ids().map(|id| self.lane(id)).map(|lane| (lane.priority, lane.depth()))
    }

    pub(crate) fn depth(&self) -> i64 {
        self.depths().map(|(_, depth)| depth).sum()
    }
}

impl<K> Lane<K> {
    fn new(priority: i32) -> Self {
        Self { priority, entries: VecDeque::new(), stale: 0 }
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns whether the lane equals a new lane.
    fn is_unused(&self) -> bool {
        self.entries.is_empty() && self.stale == 0
    }

    /// Drops stale entries, and claims the first key that is not stale.
    #[inline]
    fn pop(&mut self) -> Option<(Arc<KeyState<K>>, i32)> {
        while let Some(Entry { state, version }) = self.entries.pop_front() {
            if state.claim(self.priority, version) {
                return Some((state, self.priority));
            }
            self.stale -= 1;
        }
        None
    }

    #[inline]
    fn append(&mut self, newer: &mut Self) {
        self.stale += std::mem::take(&mut newer.stale);
        if !self.is_empty() {
            return self.entries.append(&mut newer.entries);
        }
        std::mem::swap(&mut self.entries, &mut newer.entries);
        // Give back the memory that a burst needed.
        if newer.entries.capacity() > KEPT_CAPACITY && newer.entries.capacity() / 8 > self.entries.len() {
            newer.entries.shrink_to(KEPT_CAPACITY);
        }
    }

    fn depth(&self) -> i64 {
        self.entries.len() as i64 - self.stale
    }
}

/// Chooses between the highest lane and the lower lanes: one turn in `interval` goes to the lower lanes, in
/// rotation. A turn is a key handed out while more than one lane has entries.
pub(crate) struct Ageing {
    interval: u32,
    turn: u32,
    /// The current turn has been counted.
    counted: bool,
}

impl Ageing {
    pub(crate) fn new(interval: u32) -> Self {
        Self { interval, turn: 0, counted: false }
    }

    /// Starts a turn. A turn counts only if there is a choice.
    #[inline]
    pub(crate) fn start_turn(&mut self) {
        self.counted = false;
    }

    /// Returns the number of the lower lane that this turn goes to, or `None` for the highest lane. Repeated
    /// calls in one turn return the same number.
    fn choose_lower(&mut self) -> Option<usize> {
        if !std::mem::replace(&mut self.counted, true) {
            self.turn = self.turn.wrapping_add(1);
        }
        self.turn.is_multiple_of(self.interval).then(|| (self.turn / self.interval).wrapping_sub(1) as usize)
    }
}
