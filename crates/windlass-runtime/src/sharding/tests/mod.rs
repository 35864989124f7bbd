//! The protocol without a network: scripts with transcripts, and random schedules.

mod scenarios;
mod schedules;
mod server;

use std::time::Duration;

use super::{
    Sharding,
    membership::{Membership, MembershipTiming},
};
use crate::leader_election::Timing;

fn timing() -> MembershipTiming {
    MembershipTiming { lease: Timing::default(), hand_over_timeout: Duration::from_secs(5) }
}

fn replica(random: u64) -> Membership {
    Membership::new("op", timing(), random)
}

/// Each replica with an empty identity would count as stopped, and all replicas would work on all keys.
#[test]
fn a_member_needs_an_identity() {
    assert!(Sharding::new("op").identity("a").check().is_ok());
    let error = Sharding::new("op").identity("").check().expect_err("refused").to_string();
    assert_eq!(error, "sharding \"op\": the identity is empty");
    Sharding::new("op").namespace("a/b").check().expect_err("refused");
}
