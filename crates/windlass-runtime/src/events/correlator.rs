//! Which events are written, and as what: client-go's correlator, told the time.
//!
//! Three steps: a spam filter per object, aggregation of events that differ in their note only, and counting of those that are
//! the same, which become an update of the first.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;

use super::Occurrence;

/// client-go's figures.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Objects and events that are remembered.
    pub(super) remembered: usize,
    /// Events of one object at once, and how long until the next is allowed after that.
    pub(super) burst: u32,
    pub(super) refill: Duration,
    /// As many different notes of one reason become one event, if no more than this time lies between two of them.
    pub(super) similar: usize,
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

/// What is to be done with an occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Too many of one object.
    Drop,
    /// The first of its kind.
    Create { key: String, note: String },
    /// One more of an event that was written.
    Count { key: String, name: String, note: String, count: i32, first: Timestamp },
}

pub(super) struct Correlator {
    limits: Limits,
    buckets: Remembered<Bucket>,
    similar: Remembered<Similar>,
    written: Remembered<WrittenEvent>,
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
            buckets: Remembered::new(limits.remembered),
            similar: Remembered::new(limits.remembered),
            written: Remembered::new(limits.remembered),
        }
    }

    /// Decides about an occurrence.
    pub(super) fn correlate(&mut self, occurrence: &Occurrence, now: Timestamp) -> Verdict {
        let (key, note) = self.aggregate(occurrence, now);
        if !self.take_token(occurrence, now) {
            return Verdict::Drop;
        }
        match self.written.get(&key) {
            Some(event) => Verdict::Count {
                name: event.name.clone(),
                count: event.count + 1,
                first: event.first,
                key,
                note,
            },
            None => Verdict::Create { key, note },
        }
    }

    /// Remembers what was written.
    pub(super) fn written(&mut self, key: String, name: String, count: i32, first: Timestamp) {
        self.written.put(key, WrittenEvent { name, count, first });
    }

    /// Forgets an event that the server does not have any more.
    pub(super) fn forget(&mut self, key: &str) {
        self.written.remove(key);
    }

    fn aggregate(&mut self, occurrence: &Occurrence, now: Timestamp) -> (String, String) {
        let group = occurrence.group_key();
        let same = occurrence.full_key();
        let mut similar =
            self.similar.remove(&group).unwrap_or(Similar { notes: BTreeSet::new(), last: now });
        if since(similar.last, now) > self.limits.similar_within {
            similar.notes.clear();
        }
        similar.last = now;
        similar.notes.insert(occurrence.note.clone());
        let many = similar.notes.len() >= self.limits.similar;
        if many {
            // Only their number counts; the set grows no further.
            similar.notes.pop_first();
        }
        self.similar.put(group.clone(), similar);
        if many {
            (group, format!("(combined from similar events): {}", occurrence.note))
        } else {
            (same, occurrence.note.clone())
        }
    }

    fn take_token(&mut self, occurrence: &Occurrence, now: Timestamp) -> bool {
        let key = occurrence.object_key();
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

/// A map that forgets what was used longest ago.
struct Remembered<V> {
    limit: usize,
    values: BTreeMap<String, (u64, V)>,
    order: BTreeMap<u64, String>,
    clock: u64,
}

impl<V> Remembered<V> {
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
