//! The faults of the stand-in.

use std::time::Duration;

/// The faults of requests to a stand-in. Default: no faults.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Faults {
    /// Every request is answered with this status code.
    pub always: Option<u16>,
    /// Every connection is closed without a response: the server is down.
    pub down: bool,
    /// Every response comes this much later.
    pub delay: Duration,
    /// A share of the requests, in percent, fails at random: with an error, or by a connection that is closed before or after the
    /// request was carried out.
    pub percent: u8,
    /// The number of lost responses to writes. The writes are carried out.
    pub lost: u32,
    random: Option<fastrand::Rng>,
}

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Work,
    Refuse(u16),
    CloseBefore,
    /// The request is carried out, and the sender gets no response.
    CloseAfter,
}

impl Faults {
    /// Returns a server that is down.
    pub fn down() -> Self {
        Self { down: true, ..Self::default() }
    }

    /// Returns a server that answers every request with a status code.
    pub fn always(code: u16) -> Self {
        Self { always: Some(code), ..Self::default() }
    }

    /// Returns a server that answers late.
    pub fn slow(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// Returns a server that fails a share of the requests, in the same way in every run with the same seed
    /// and order of requests.
    pub fn random(percent: u8, seed: u64) -> Self {
        Self { percent, random: Some(fastrand::Rng::with_seed(seed)), ..Self::default() }
    }

    /// Returns a server that loses the responses to the first writes.
    pub fn lost_responses(count: u32) -> Self {
        Self { lost: count, ..Self::default() }
    }

    pub(super) fn next(&mut self, writes: bool) -> (Fate, Duration) {
        if self.down {
            return (Fate::CloseBefore, Duration::ZERO);
        }
        if let Some(code) = self.always {
            return (Fate::Refuse(code), self.delay);
        }
        if writes && self.lost > 0 {
            self.lost -= 1;
            return (Fate::CloseAfter, self.delay);
        }
        let fails = self.random.as_mut().is_some_and(|random| random.u8(0..100) < self.percent);
        let fates = [
            Fate::Refuse(500),
            Fate::Refuse(503),
            Fate::Refuse(409),
            Fate::Refuse(401),
            Fate::CloseBefore,
            Fate::CloseAfter,
            Fate::CloseAfter,
        ];
        let fate = match &mut self.random {
            Some(random) if fails => fates[random.usize(0..fates.len())],
            _ => Fate::Work,
        };
        (fate, self.delay)
    }
}
