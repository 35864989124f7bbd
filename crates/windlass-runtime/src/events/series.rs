//! Decides which events of events.k8s.io/v1 are written: client-go's event series, as a state machine without
//! a clock.
//!
//! The first event of a series key creates an Event. The second event makes the Event a series, and the
//! series is written; further events are only counted. A series is written again every 30 minutes, so that
//! the API server does not delete the Event, and ends with a last write after 6 minutes without an event.

use std::{collections::BTreeMap, time::Duration};

use jiff::Timestamp;

use super::RecordedEvent;

/// The time without an event after which an event is forgotten, or a series ends. Series are checked at this
/// interval.
pub(super) const FINISH: Duration = Duration::from_mins(6);

/// The interval at which the Events of continuing series are written.
pub(super) const REFRESH: Duration = Duration::from_mins(30);

/// The number of different events that are remembered. client-go has no limit.
const REMEMBERED: usize = 4096;

/// The key of a tracked event. client-go calls events with equal keys isomorphic; the note is not a part of
/// the key.
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
    /// Set the series of an Event. If the Event is gone, create an Event with the series.
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
    /// Takes an event, and returns the writes. `name` is the name for a created Event.
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

    /// Ends series without new events, refreshes the other series when due, and returns the writes.
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

    /// Ends all series, and returns the writes.
    pub(super) fn finish(&mut self) -> Vec<SeriesWrite> {
        let tracked = std::mem::take(&mut self.tracked);
        // The second event of a series is written at once.
        tracked.into_values().filter(|tracked| tracked.count > 2).map(|tracked| tracked.series()).collect()
    }
}

fn elapsed(earlier: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(now.duration_since(earlier)).unwrap_or_default()
}
