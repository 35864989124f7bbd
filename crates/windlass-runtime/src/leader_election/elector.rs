//! client-go's election algorithm as a state machine, without a clock, network or task.

use std::time::Duration;

use jiff::Timestamp;

/// The times of a leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long other replicas wait for a leader that does not renew the Lease.
    pub lease_duration: Duration,
    /// The time for which the leader tries to renew the Lease before giving up.
    pub renew_deadline: Duration,
    /// The time between two attempts to acquire or renew the Lease.
    pub retry_period: Duration,
}

impl Default for Timing {
    /// Returns client-go's 15, 10 and 2 seconds.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl Timing {
    /// Checks that the times fit together. Returns the error.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        let Self { renew_deadline, retry_period, .. } = *self;
        // A Lease counts in seconds.
        let lease_duration = Duration::from_secs(self.lease_duration.as_secs());
        if i32::try_from(lease_duration.as_secs()).is_err() {
            return Err("lease_duration must have at most 2147483647 seconds, which the Lease can hold");
        }
        if lease_duration <= renew_deadline {
            return Err("lease_duration, in whole seconds, must be longer than renew_deadline");
        }
        // A long period cannot be multiplied.
        if renew_deadline <= retry_period || renew_deadline <= retry_period.mul_f64(JITTER) {
            return Err("renew_deadline must be longer than 1.2 times retry_period");
        }
        if retry_period.is_zero() {
            return Err("retry_period must not be zero");
        }
        Ok(())
    }
}

/// Candidates delay their attempts by a random part of the retry period, up to this factor.
const JITTER: f64 = 1.2;

/// The accuracy with which a waiting replica knows the time of the leader's renewals, as a part of the retry
/// period.
const LOOK: f64 = 0.125;

/// The current time by two clocks. Decisions use the monotonic clock; the wall clock is only written into the
/// Lease.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    /// The time since a fixed moment, by the monotonic clock.
    pub(crate) elapsed: Duration,
    pub(crate) time: Timestamp,
}

/// The contents of the Lease.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    /// The identity of the leader; empty if there is none.
    pub(crate) holder: String,
    pub(crate) lease_duration: Duration,
    pub(crate) acquired: Option<Timestamp>,
    pub(crate) renewed: Option<Timestamp>,
    pub(crate) transitions: i32,
}

/// The next action of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ElectionStep {
    /// Wait until this time has passed since the fixed moment.
    WaitUntil(Duration),
    /// Read the Lease, and report the result to [`Elector::read`].
    Read,
    /// Create the Lease, and report the result to [`Elector::wrote`].
    Create(Record),
    /// Replace the Lease, unless the Lease has changed since the last read or write. Report the result to
    /// [`Elector::wrote`].
    Update(Record),
    /// The leadership is lost. The election has ended, unless [`Elector::campaign_again`] restarts the
    /// election.
    Lost,
}

/// The result of reading the Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LeaseRead {
    Found(Record),
    /// There is no Lease.
    Absent,
    /// The request failed.
    Failed,
}

/// One candidate.
#[derive(Debug)]
pub(crate) struct Elector {
    identity: String,
    timing: Timing,
    phase: Phase,
    leading: bool,
    /// The last read Lease, and the time of the first read of these contents: the times in the Lease are
    /// another replica's.
    observed: Option<(Record, Duration)>,
    /// How many reads since then have found the same contents.
    unchanged: u32,
    /// The time at which this candidate sent the write that last acquired or renewed the Lease. The server
    /// wrote the Lease later, and other replicas saw the Lease still later: other replicas wait longer than
    /// this candidate.
    renewed: Duration,
    /// When the current write was sent.
    write_sent: Duration,
    /// True if this candidate wrote the Lease last, so that it need not read it before the next renewal.
    fresh: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// No request until this time.
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
            unchanged: 0,
            renewed: Duration::ZERO,
            write_sent: Duration::ZERO,
            fresh: false,
        }
    }

    /// Returns the candidate's name.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the moment at which the leader gives up unless the Lease is renewed before; `None` for a
    /// candidate that does not lead.
    pub(crate) fn leads_until(&self) -> Option<Duration> {
        self.leading.then(|| self.give_up_at())
    }

    /// Returns whether this candidate leads. The candidate gives up if [`next`](Self::next) is called after
    /// the renew deadline.
    pub(crate) fn is_leading(&self) -> bool {
        self.leading
    }

    /// Returns the leader as of the last read or write.
    pub(crate) fn leader(&self) -> Option<&str> {
        self.observed.as_ref().map(|(record, _)| record.holder.as_str()).filter(|holder| !holder.is_empty())
    }

    /// Returns the time that a request may take: at most until the leader must give up.
    pub(crate) fn request_timeout(&self, now: Clocks) -> Duration {
        let usual = (self.timing.renew_deadline / 2).max(Duration::from_secs(1));
        if self.leading { usual.min(self.give_up_at().saturating_sub(now.elapsed)) } else { usual }
    }

    fn give_up_at(&self) -> Duration {
        self.renewed + self.timing.renew_deadline
    }

    /// Returns the next action. `fraction` is a random number in `0.0..1.0`.
    pub(crate) fn next(&mut self, now: Clocks, fraction: f64) -> ElectionStep {
        if self.leading && now.elapsed >= self.give_up_at() {
            self.leading = false;
            self.phase = Phase::Lost;
        }
        match self.phase.clone() {
            Phase::Lost => ElectionStep::Lost,
            Phase::Resting(until) if now.elapsed < until => ElectionStep::WaitUntil(until),
            // The leader wrote the Lease last, and need not read the Lease.
            Phase::Resting(_) if self.leading && self.fresh => self.write(now),
            Phase::Resting(_) | Phase::Reading => {
                self.phase = Phase::Reading;
                ElectionStep::Read
            }
            Phase::Writing(_) => {
                // The result of the write was not reported, and counts as a failure.
                self.rest(now, fraction);
                self.next(now, fraction)
            }
        }
    }

    /// Reports the result of reading the Lease, and returns the next action.
    pub(crate) fn read(&mut self, now: Clocks, fraction: f64, reading: LeaseRead) -> ElectionStep {
        match reading {
            LeaseRead::Failed => {
                self.rest(now, fraction);
                self.next(now, fraction)
            }
            LeaseRead::Absent => {
                let record = self.record(now, None);
                self.write_sent = now.elapsed;
                self.phase = Phase::Writing(record.clone());
                ElectionStep::Create(record)
            }
            LeaseRead::Found(record) => {
                if self.observed.as_ref().is_none_or(|(known, _)| *known != record) {
                    self.observed = Some((record, now.elapsed));
                    self.unchanged = 0;
                } else {
                    self.unchanged = self.unchanged.saturating_add(1);
                }
                if self.held_by_another(now) {
                    // Another replica has taken the Lease.
                    if self.leading {
                        self.leading = false;
                        self.phase = Phase::Lost;
                        return ElectionStep::Lost;
                    }
                    self.phase = Phase::Resting(self.next_look(now));
                    return self.next(now, fraction);
                }
                self.write(now)
            }
        }
    }

    /// Reports whether the write succeeded.
    pub(crate) fn wrote(&mut self, now: Clocks, fraction: f64, ok: bool) {
        let phase = std::mem::replace(&mut self.phase, Phase::Reading);
        match phase {
            // A reply after the deadline has no value: other replicas may have waited long enough.
            Phase::Writing(record) if ok && now.elapsed < self.write_sent + self.timing.renew_deadline => {
                self.observed = Some((record, now.elapsed));
                self.renewed = self.write_sent;
                self.leading = true;
                self.fresh = true;
                self.phase = Phase::Resting((now.elapsed + self.timing.retry_period).min(self.give_up_at()));
            }
            // Another replica wrote the Lease, or the renewal failed otherwise: read the Lease at once.
            Phase::Writing(_) if self.leading && self.fresh => {
                self.fresh = false;
                self.phase = Phase::Reading;
            }
            _ => self.rest(now, fraction),
        }
    }

    /// Gives up the leadership. Returns the contents that release the Lease, or `None` if this candidate does not lead.
    pub(crate) fn release(&mut self, now: Clocks) -> Option<Record> {
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

    /// Lets a candidate that has lost the leadership campaign again, beginning with a read of the Lease.
    pub(crate) fn campaign_again(&mut self) {
        self.leading = false;
        self.fresh = false;
        self.unchanged = 0;
        self.phase = Phase::Reading;
    }

    fn held_by_another(&self, now: Clocks) -> bool {
        self.observed.as_ref().is_some_and(|(record, since)| {
            let expired = now.elapsed >= *since + record.lease_duration;
            !record.holder.is_empty() && record.holder != self.identity && !expired
        })
    }

    fn write(&mut self, now: Clocks) -> ElectionStep {
        let record = self.record(now, self.observed.as_ref().map(|(record, _)| record));
        self.write_sent = now.elapsed;
        self.phase = Phase::Writing(record.clone());
        ElectionStep::Update(record)
    }

    fn record(&self, now: Clocks, before: Option<&Record>) -> Record {
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

    /// Returns when a replica that waits reads the Lease again: just after the leader's next renewal, and when the Lease ends.
    ///
    /// The leader renews once per retry period. After a renewal, the replica rests for a little less than the
    /// period: the reads come earlier and earlier in the period, until a read comes before the renewal. The
    /// next read follows soon. The replica then knows the time of each renewal to an eighth of the period, at
    /// about one read per period, and the Lease of a dead leader is not taken later.
    fn next_look(&self, now: Clocks) -> Duration {
        let period = self.timing.retry_period;
        let rest = match self.unchanged {
            0 => period.mul_f64(1.0 - LOOK),
            unchanged => period.mul_f64(LOOK * f64::from(1_u32 << (unchanged - 1).min(3))),
        };
        let ends = self.observed.as_ref().map(|(record, since)| since.saturating_add(record.lease_duration));
        (now.elapsed + rest).min(ends.unwrap_or(Duration::MAX))
    }

    fn rest(&mut self, now: Clocks, fraction: f64) {
        let period = self.timing.retry_period;
        let until = if self.leading {
            // Not later than the moment at which the leader must give up.
            (now.elapsed + period).min(self.give_up_at())
        } else {
            now.elapsed + period + period.mul_f64(JITTER * fraction)
        };
        self.phase = Phase::Resting(until);
    }
}
