//! Decides which events of events.k8s.io/v1 are written: client-go's event series, as a state machine without a clock.
//!
//! The first event of its sort is created. The second one makes it a series, which is written; the following ones are only counted.
//! A series is written again every 30 minutes, so that the API server does not delete its Event, and a last time when nothing was
//! added for 6 minutes, with which it ends.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::RecordedEvent;

/// An event is forgotten, and a series ended, when nothing was added for this time. Series are looked through as often.
pub(super) const FINISH: Duration = Duration::from_mins(6);

/// How often the Events of series are written, even if they go on.
pub(super) const REFRESH: Duration = Duration::from_mins(30);

/// The number of different events that are remembered. client-go has no limit.
const REMEMBERED: usize = 4096;

/// What a tracked event is known by. client-go calls equal ones isomorphic; the note is no part of it.
type SeriesKey = String;

/// Remembers the events of the last minutes.
#[derive(Default)]
pub(super) struct SeriesTracker {
    tracked: BTreeMap<SeriesKey, Tracked>,
    refreshed: Option<Timestamp>,
    looked_through: Option<Timestamp>,
}

struct Tracked {
    name: String,
    event: RecordedEvent,
    first: Timestamp,
    last: Timestamp,
    count: i32,
}

/// A request that the tracker asks for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum SeriesWrite {
    /// Create an Event without a series.
    Create { name: String, event: RecordedEvent, time: Timestamp },
    /// Set the series of an Event; create it with the series if it is gone.
    Series { name: String, event: RecordedEvent, time: Timestamp, count: i32, last: Timestamp },
}

impl Tracked {
    fn series(&self) -> SeriesWrite {
        SeriesWrite::Series {
            name: self.name.clone(),
            event: self.event.clone(),
            time: self.first,
            count: self.count,
            last: self.last,
        }
    }

    fn is_series(&self) -> bool {
        self.count > 1
    }
}

impl SeriesTracker {
    /// Takes an event, and returns what is to be written. `name` is a name for an Event, used if one is created.
    pub(super) fn record(&mut self, event: RecordedEvent, name: String, now: Timestamp) -> Vec<SeriesWrite> {
        self.looked_through.get_or_insert(now);
        let key = event.series_key();
        if let Some(tracked) = self.tracked.get_mut(&key) {
            tracked.count = tracked.count.saturating_add(1);
            tracked.last = now;
            return if tracked.count == 2 { vec![tracked.series()] } else { Vec::new() };
        }
        let mut writes: Vec<_> = self.make_room().into_iter().collect();
        let tracked = Tracked { name: name.clone(), event: event.clone(), first: now, last: now, count: 1 };
        self.tracked.insert(key, tracked);
        writes.push(SeriesWrite::Create { name, event, time: now });
        writes
    }

    /// Forgets the event that was not repeated for the longest time, if there are too many. The end of a series is written.
    fn make_room(&mut self) -> Option<SeriesWrite> {
        if self.tracked.len() < REMEMBERED {
            return None;
        }
        let oldest = self.tracked.iter().min_by_key(|(_, tracked)| tracked.last)?.0.clone();
        self.tracked.remove(&oldest).filter(Tracked::is_series).map(|tracked| tracked.series())
    }

    /// Returns when [`look_through`](Self::look_through) is to be called next, seen from `now`.
    pub(super) fn next_look(&self, now: Timestamp) -> Option<Duration> {
        let since = self.looked_through.map_or(Duration::ZERO, |last| elapsed(last, now));
        (!self.tracked.is_empty()).then(|| FINISH.saturating_sub(since))
    }

    /// Ends what has not been repeated, refreshes the other series when it is time, and returns what is to be written.
    pub(super) fn look_through(&mut self, now: Timestamp) -> Vec<SeriesWrite> {
        self.looked_through = Some(now);
        let refresh = elapsed(*self.refreshed.get_or_insert(now), now) >= REFRESH;
        if refresh {
            self.refreshed = Some(now);
        }
        let mut writes = Vec::new();
        self.tracked.retain(|_, tracked| {
            let ended = elapsed(tracked.last, now) > FINISH;
            if tracked.is_series() && (ended || refresh) {
                writes.push(tracked.series());
            }
            !ended
        });
        writes
    }

    /// Ends all series, and returns what is to be written.
    pub(super) fn finish(&mut self) -> Vec<SeriesWrite> {
        let tracked = std::mem::take(&mut self.tracked);
        // The second event of a series is written at once.
        tracked.into_values().filter(|tracked| tracked.count > 2).map(|tracked| tracked.series()).collect()
    }
}

fn elapsed(earlier: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(earlier)).unwrap_or_default()
}
