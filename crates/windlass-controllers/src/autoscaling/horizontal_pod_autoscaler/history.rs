//! The recent recommendations and changes of an autoscaler. Both limit the next change.

use k8s_openapi::api::autoscaling::v2::HPAScalingRules;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

/// The longest stabilization window and policy period that the API allows.
const LONGEST: SignedDuration = SignedDuration::from_hours(1);

/// A number of replicas at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub replicas: i32,
    pub at: Timestamp,
}

/// The samples of an autoscaler, oldest first. Samples that no rule can count are forgotten.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// The replicas that the metrics asked for, before all limits.
    recommendations: Vec<Sample>,
    /// How many replicas were added.
    added: Vec<Sample>,
    /// How many replicas were removed.
    removed: Vec<Sample>,
}

impl History {
    /// Notes the size of the target when the autoscaler is first seen.
    pub(super) fn begin(&mut self, replicas: i32, now: Timestamp) {
        if self.recommendations.is_empty() {
            self.recommendations.push(Sample { replicas, at: now });
        }
    }

    pub(super) fn recommend(&mut self, replicas: i32, now: Timestamp) {
        push(&mut self.recommendations, replicas, now);
    }

    /// Notes a change of the target's size.
    pub(super) fn rescaled(&mut self, from: i32, to: i32, now: Timestamp) {
        let samples = if to > from { &mut self.added } else { &mut self.removed };
        push(samples, (to - from).abs(), now);
    }

    /// Returns the recommendations after `since`.
    pub(super) fn recommendations(&self, since: Timestamp) -> impl Iterator<Item = i32> {
        after(&self.recommendations, since)
    }

    /// Returns the size of the target at the beginning of a period that ends now.
    pub(super) fn at_start_of(&self, period_seconds: i32, current: i32, now: Timestamp) -> i32 {
        let since = ago(period_seconds, now);
        let sum = |samples: &[Sample]| after(samples, since).fold(0_i32, i32::saturating_add);
        current.saturating_sub(sum(&self.added)).saturating_add(sum(&self.removed))
    }
}

fn push(samples: &mut Vec<Sample>, replicas: i32, now: Timestamp) {
    let oldest = now.checked_sub(LONGEST).unwrap_or(Timestamp::MIN);
    samples.retain(|sample| sample.at >= oldest);
    samples.push(Sample { replicas, at: now });
}

fn after(samples: &[Sample], since: Timestamp) -> impl Iterator<Item = i32> {
    samples.iter().filter(move |sample| sample.at > since).map(|sample| sample.replicas)
}

/// Returns the time this many seconds ago.
pub(super) fn ago(seconds: i32, now: Timestamp) -> Timestamp {
    now.checked_sub(SignedDuration::from_secs(seconds.into())).unwrap_or(Timestamp::MIN)
}

/// Returns the stabilization window of a direction, in seconds.
pub(super) fn window(rules: Option<&HPAScalingRules>, default: i32) -> i32 {
    rules.and_then(|rules| rules.stabilization_window_seconds).unwrap_or(default)
}
