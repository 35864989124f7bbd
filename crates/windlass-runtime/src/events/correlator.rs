//! Decides if and how events are written: client-go's correlator, as a state machine without a clock.
//!
//! Three steps: a spam filter per object, aggregation of events that differ only in the note, and counting of
//! equal events. A repeated event updates the first event.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

use super::RecordedEvent;

/// The correlator's limits. The defaults are client-go's.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The number of objects and of events that are remembered.
    pub(super) remembered: usize,
    /// The number of events that an object may have in a burst.
    pub(super) burst: u32,
    /// The time after which an object may have another event.
    pub(super) refill: Duration,
    /// The number of different notes from which events of a reason are combined.
    pub(super) similar: usize,
    /// The longest time between two events with different notes in a series.
    pub(super) similar_within: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            remembered: 4096,
            burst: 25,
            refill: Duration::from_mins(5),
            similar: 10,
            similar_within: Duration::from_mins(10),
        }
    }
}

/// The correlator's decision about an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Drop it: the object has too many events.
    Drop,
    /// Create an event object.
    Create { key: String, note: String },
    /// Increase the count of an event object that exists.
    Count { key: String, name: String, note: String, count: i32, first: Timestamp },
}

pub(super) struct Correlator {
    limits: Limits,
    buckets: LruMap<Bucket>,
    similar: LruMap<Similar>,
    written: LruMap<WrittenEvent>,
}

struct Bucket {
    tokens: f64,
    filled: Timestamp,
}

struct Similar {
    notes: BTreeSet<String>,
    last: Timestamp,
}

struct WrittenEvent {
    name: String,
    count: i32,
    first: Timestamp,
}

impl Correlator {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            buckets: LruMap::new(limits.remembered),
            similar: LruMap::new(limits.remembered),
            written: LruMap::new(limits.remembered),
        }
    }

    /// Decides about an event.
    pub(super) fn correlate(&mut self, event: &RecordedEvent, now: Timestamp) -> Decision {
        let (key, note) = self.aggregate(event, now);
        if !self.take_token(event, now) {
            return Decision::Drop;
        }
        match self.written.get(&key) {
            Some(event) => Decision::Count {
                name: event.name.clone(),
                count: event.count + 1,
                first: event.first,
                key,
                note,
            },
            None => Decision::Create { key, note },
        }
    }

    /// Remembers an event object that was written.
    pub(super) fn written(&mut self, key: String, name: String, count: i32, first: Timestamp) {
        self.written.put(key, WrittenEvent { name, count, first });
    }

    /// Forgets an event object that the API server has deleted.
    pub(super) fn forget(&mut self, key: &str) {
        self.written.remove(key);
    }

    fn aggregate(&mut self, event: &RecordedEvent, now: Timestamp) -> (String, String) {
        let group = event.group_key();
        let same = event.full_key();
        let mut similar =
            self.similar.remove(&group).unwrap_or(Similar { notes: BTreeSet::new(), last: now });
        if since(similar.last, now) > self.limits.similar_within {
            similar.notes.clear();
        }
        similar.last = now;
        similar.notes.insert(event.note.clone());
        let many = similar.notes.len() >= self.limits.similar;
        if many {
            // Only the number of notes matters: the set need not grow.
            similar.notes.pop_first();
        }
        self.similar.put(group.clone(), similar);
        if many {
            (group, format!("(combined from similar events): {}", event.note))
        } else {
            (same, event.note.clone())
        }
    }

    fn take_token(&mut self, event: &RecordedEvent, now: Timestamp) -> bool {
        let key = event.object_key();
        let burst = f64::from(self.limits.burst);
        let mut bucket = self.buckets.remove(&key).unwrap_or(Bucket { tokens: burst, filled: now });
        let gained = since(bucket.filled, now).as_secs_f64() / self.limits.refill.as_secs_f64();
        bucket.tokens = (bucket.tokens + gained).min(burst);
        bucket.filled = now;
        let allowed = bucket.tokens >= 1.0;
        if allowed {
            bucket.tokens -= 1.0;
        }
        self.buckets.put(key, bucket);
        allowed
    }
}

fn since(earlier: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(earlier)).unwrap_or_default()
}

/// A map with a size limit that evicts the least recently used entry.
struct LruMap<V> {
    limit: usize,
    values: BTreeMap<String, (u64, V)>,
    order: BTreeMap<u64, String>,
    clock: u64,
}

impl<V> LruMap<V> {
    fn new(limit: usize) -> Self {
        Self { limit, values: BTreeMap::new(), order: BTreeMap::new(), clock: 0 }
    }

    fn get(&mut self, key: &str) -> Option<&V> {
        let (used, _) = self.values.get_mut(key)?;
        self.order.remove(used);
        self.clock += 1;
        *used = self.clock;
        self.order.insert(self.clock, key.to_owned());
        self.values.get(key).map(|(_, value)| value)
    }

    fn remove(&mut self, key: &str) -> Option<V> {
        let (used, value) = self.values.remove(key)?;
        self.order.remove(&used);
        Some(value)
    }

    fn put(&mut self, key: String, value: V) {
        self.remove(&key);
        if self.values.len() >= self.limit
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.values.remove(&oldest);
        }
        self.clock += 1;
        self.order.insert(self.clock, key.clone());
        self.values.insert(key, (self.clock, value));
    }
}
