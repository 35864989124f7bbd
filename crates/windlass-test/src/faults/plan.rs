//! Chooses faults by a seed.

use std::time::Duration;

use jiff::SignedDuration;
use windlass_runtime::permission::{Access, Verb};

use super::Fault;

/// The probability that a request meets a fault.
const RATE: f64 = 0.15;

/// The largest number of faults in a run, and of crashes.
const FAULTS: usize = 40;
const CRASHES: usize = 4;

/// Chooses faults by a seed: the same requests in the same order meet the same faults.
#[derive(Debug)]
pub(super) struct Plan {
    random: fastrand::Rng,
    faults: usize,
    crashes: usize,
}

impl Plan {
    pub(super) fn new(seed: u64) -> Self {
        Self { random: fastrand::Rng::with_seed(seed), faults: FAULTS, crashes: CRASHES }
    }

    /// Returns the fault of a request, or `None` for no fault. `resumes` is true for a watch that continues
    /// from a resource version.
    pub(super) fn choose(&mut self, access: &Access, resumes: bool) -> Option<Fault> {
        if self.faults == 0 || self.random.f64() >= RATE {
            return None;
        }
        let fault = self.fault_of(access, resumes)?;
        self.faults -= 1;
        Some(fault)
    }

    fn fault_of(&mut self, access: &Access, resumes: bool) -> Option<Fault> {
        if access.is_url() {
            return None;
        }
        let mut choices = vec![
            Fault::ServerError,
            Fault::Forbidden,
            Fault::TooManyRequests(Duration::from_secs(self.random.u64(1..5))),
            Fault::Cut { committed: false },
        ];
        if self.random.u8(..8) == 0 {
            choices.push(Fault::ClockJump(SignedDuration::from_secs(self.random.i64(-300..300))));
        }
        match access.verb() {
            Verb::Watch => {
                let after = self.random.usize(..6);
                let events = self.random.usize(1..6);
                choices.extend([
                    Fault::WatchDrop { after },
                    Fault::WatchCut { after },
                    Fault::Stale { events },
                    Fault::Stale { events },
                ]);
                if resumes {
                    choices.push(Fault::Expired);
                }
            }
            _ if access.is_write() => {
                let committed = self.random.bool();
                choices.extend([Fault::Timeout { committed }, Fault::Cut { committed: true }]);
                if access.verb() != Verb::Create {
                    choices.push(Fault::Conflict);
                }
                if access.resource() == Some("leases") {
                    choices.push(Fault::LeaseTaken);
                }
                if self.crashes > 0 {
                    choices.extend([Fault::Crash { committed: true }, Fault::Crash { committed: false }]);
                }
            }
            _ => choices.push(Fault::Timeout { committed: false }),
        }
        let fault = choices.swap_remove(self.random.usize(..choices.len()));
        if matches!(fault, Fault::Crash { .. }) {
            self.crashes -= 1;
        }
        Some(fault)
    }
}
