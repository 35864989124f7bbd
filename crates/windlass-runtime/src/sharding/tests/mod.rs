//! The protocol without a network: scripts with transcripts, and random schedules.

mod scenarios;
mod schedules;
mod server;

use std::time::Duration;

use super::membership::{Membership, MembershipTiming};
use crate::leader_election::Timing;

fn timing() -> MembershipTiming {
    MembershipTiming { lease: Timing::default(), hand_over_timeout: Duration::from_secs(5) }
}

fn replica(random: u64) -> Membership {
    Membership::new("op", timing(), random)
}
