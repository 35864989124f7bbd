//! The election, without a clock, a network or a task: client-go's algorithm as a state machine.

use std::time::Duration;

use jiff::Timestamp;

/// How an election is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long others wait for a leader that does not renew before they take over.
    pub lease_duration: Duration,
    /// How long a leader tries to renew before it gives up.
    pub renew_deadline: Duration,
    /// The time between two tries.
    pub retry_period: Duration,
}

impl Default for Timing {
    /// client-go's 15, 10 and 2 seconds.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

/// Candidates spread their tries by up to this factor of the retry period.
const JITTER: f64 = 1.2;

/// Now, by two clocks: the one that only goes forward decides, the one of the day is written down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Since some fixed moment.
    pub(crate) elapsed: Duration,
    pub(crate) time: Timestamp,
}

/// What the Lease says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// Empty when nobody leads.
    pub(crate) holder: String,
    pub(crate) lease_duration: Duration,
    pub(crate) acquired: Option<Timestamp>,
    pub(crate) renewed: Option<Timestamp>,
    pub(crate) transitions: i32,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Wait until this time has passed since the fixed moment.
    WaitUntil(Duration),
    /// Read the Lease, and tell with [`Elector::read`].
    Read,
    /// Create the Lease, and tell with [`Elector::wrote`].
    Create(Record),
    /// Replace the Lease that was read or written last, unless somebody else did; tell with [`Elector::wrote`].
    Update(Record),
    /// The leadership is lost. There is nothing more to do.
    Lost,
}

/// What a request for the Lease came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Found(Record),
    /// There is no Lease yet.
    Absent,
    /// No answer, or not a good one.
    Failed,
}

/// One candidate.
#[derive(Debug)]
pub(crate) struct Elector {
    identity: String,
    timing: Timing,
    phase: Phase,
    leading: bool,
    /// The Lease as it was last seen, and when it was first seen so: another's clock is never trusted.
    observed: Option<(Record, Duration)>,
    /// When this candidate, leading, last renewed.
    renewed: Duration,
    /// Whether the Lease that is to be replaced is the one this candidate wrote last, so that it need not be read again.
    fresh: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is under way until this time.
    Resting(Duration),
    Reading,
    Writing(Record),
    Lost,
}

impl Elector {
    pub(crate) fn new(identity: impl Into<String>, timing: Timing) -> Self {
        Self {
            identity: identity.into(),
            timing,
            phase: Phase::Resting(Duration::ZERO),
            leading: false,
            observed: None,
            renewed: Duration::ZERO,
            fresh: false,
        }
    }

    /// Returns the candidate's name.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Whether this candidate leads. It stops doing so by itself when [`next`](Self::next) is asked too late.
    pub(crate) fn is_leading(&self) -> bool {
        self.leading
    }

    /// Who leads, as far as is known.
    pub(crate) fn leader(&self) -> Option<&str> {
        self.observed.as_ref().map(|(record, _)| record.holder.as_str()).filter(|holder| !holder.is_empty())
    }

    /// How long a request may take: never past the moment at which a leader must give up.
    pub(crate) fn request_timeout(&self, now: Moment) -> Duration {
        let usual = (self.timing.renew_deadline / 2).max(Duration::from_secs(1));
        if self.leading { usual.min(self.give_up_at().saturating_sub(now.elapsed)) } else { usual }
    }

    fn give_up_at(&self) -> Duration {
        self.renewed + self.timing.renew_deadline
    }

    /// What is to be done now. `fraction` is a random number below 1.
    pub(crate) fn next(&mut self, now: Moment, fraction: f64) -> Step {
        if self.leading && now.elapsed >= self.give_up_at() {
            self.leading = false;
            self.phase = Phase::Lost;
        }
        match self.phase.clone() {
            Phase::Lost => Step::Lost,
            Phase::Resting(until) if now.elapsed < until => Step::WaitUntil(until),
            // A leader knows what it wrote, and writes on top of it.
            Phase::Resting(_) if self.leading && self.fresh => self.write(now),
            Phase::Resting(_) | Phase::Reading => {
                self.phase = Phase::Reading;
                Step::Read
            }
            Phase::Writing(_) => {
                // Asked again without having been told of the write: as if it had failed.
                self.rest(now, fraction);
                self.next(now, fraction)
            }
        }
    }

    /// Tells what reading the Lease came to.
    pub(crate) fn read(&mut self, now: Moment, fraction: f64, reading: Reading) -> Step {
        match reading {
            Reading::Failed => {
                self.rest(now, fraction);
                self.next(now, fraction)
            }
            Reading::Absent => {
                let record = self.record(now, None);
                self.phase = Phase::Writing(record.clone());
                Step::Create(record)
            }
            Reading::Found(record) => {
                if self.observed.as_ref().is_none_or(|(known, _)| *known != record) {
                    self.observed = Some((record, now.elapsed));
                }
                if self.held_by_another(now) {
                    // A leader that finds another's name in the Lease has lost it.
                    if self.leading {
                        self.leading = false;
                        self.phase = Phase::Lost;
                        return Step::Lost;
                    }
                    self.rest(now, fraction);
                    return self.next(now, fraction);
                }
                self.write(now)
            }
        }
    }

    /// Tells whether the write went through.
    pub(crate) fn wrote(&mut self, now: Moment, fraction: f64, ok: bool) {
        let phase = std::mem::replace(&mut self.phase, Phase::Reading);
        match phase {
            Phase::Writing(record) if ok => {
                self.observed = Some((record, now.elapsed));
                self.renewed = now.elapsed;
                self.leading = true;
                self.fresh = true;
                self.phase = Phase::Resting(now.elapsed + self.timing.retry_period);
            }
            // The Lease is not what this candidate thought it was: read it, at once if it was a guess.
            Phase::Writing(_) if self.leading && self.fresh => {
                self.fresh = false;
                self.phase = Phase::Reading;
            }
            _ => self.rest(now, fraction),
        }
    }

    /// The record that gives the leadership back, if this candidate has it. Others need not wait then.
    pub(crate) fn release(&mut self, now: Moment) -> Option<Record> {
        if !self.leading {
            return None;
        }
        self.leading = false;
        self.phase = Phase::Lost;
        let transitions = self.observed.as_ref().map_or(0, |(record, _)| record.transitions);
        Some(Record {
            holder: String::new(),
            lease_duration: Duration::from_secs(1),
            acquired: Some(now.time),
            renewed: Some(now.time),
            transitions,
        })
    }

    fn held_by_another(&self, now: Moment) -> bool {
        self.observed.as_ref().is_some_and(|(record, since)| {
            let expired = now.elapsed >= *since + record.lease_duration;
            !record.holder.is_empty() && record.holder != self.identity && !expired
        })
    }

    fn write(&mut self, now: Moment) -> Step {
        let record = self.record(now, self.observed.as_ref().map(|(record, _)| record));
        self.phase = Phase::Writing(record.clone());
        Step::Update(record)
    }

    fn record(&self, now: Moment, before: Option<&Record>) -> Record {
        let mine = before.filter(|before| before.holder == self.identity);
        Record {
            holder: self.identity.clone(),
            lease_duration: self.timing.lease_duration,
            acquired: mine.and_then(|mine| mine.acquired).or(Some(now.time)),
            renewed: Some(now.time),
            transitions: match (mine, before) {
                (Some(mine), _) => mine.transitions,
                (None, Some(other)) => other.transitions.saturating_add(1),
                (None, None) => 0,
            },
        }
    }

    fn rest(&mut self, now: Moment, fraction: f64) {
        let period = self.timing.retry_period;
        // Candidates spread out.
        let until = if self.leading {
            // On time: not a moment past the one at which it must give up.
            (now.elapsed + period).min(self.give_up_at())
        } else {
            now.elapsed + period + period.mul_f64(JITTER * fraction)
        };
        self.phase = Phase::Resting(until);
    }
}
