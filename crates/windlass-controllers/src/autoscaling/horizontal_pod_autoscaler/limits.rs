//! The limits of a change: stabilization windows, scaling policies, and the bounds of the autoscaler.

use k8s_openapi::api::autoscaling::v2::{
    HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerBehavior as Behavior,
};
use k8s_openapi::jiff::Timestamp;

use super::history::{History, ago, window};

/// How long a recommendation prevents scaling down, in seconds, unless the autoscaler says otherwise.
const DOWNSCALE_WINDOW: i32 = 300;

/// The replicas after a limit, with the reason and the message of the condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Limited {
    pub replicas: i32,
    pub reason: &'static str,
    pub message: &'static str,
}

const WITHIN: (&str, &str) = ("DesiredWithinRange", "the desired count is within the acceptable range");
const TOO_MANY: (&str, &str) =
    ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FEW: (&str, &str) =
    ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const UP_LIMIT: (&str, &str) =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const DOWN_LIMIT: (&str, &str) =
    ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate");
const UP_STABILIZED: (&str, &str) = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const DOWN_STABILIZED: (&str, &str) = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);

impl Limited {
    fn new(replicas: i32, (reason, message): (&'static str, &'static str)) -> Self {
        Self { replicas, reason, message }
    }
}

/// The sizes that bound a change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub current: i32,
    pub least: i32,
    pub most: i32,
}

/// Holds `desired` against the recent recommendations, and adds `desired` to the recommendations.
pub(super) fn stabilize(
    behavior: Option<&Behavior>,
    current: i32,
    desired: i32,
    history: &mut History,
    now: Timestamp,
) -> Limited {
    let Some(behavior) = behavior else {
        let highest = history.recommendations(ago(DOWNSCALE_WINDOW, now)).fold(desired, i32::max);
        history.recommend(desired, now);
        return Limited::new(highest, DOWN_STABILIZED);
    };
    let up = window(behavior.scale_up.as_ref(), 0);
    let down = window(behavior.scale_down.as_ref(), DOWNSCALE_WINDOW);
    let lowest = history.recommendations(ago(up, now)).fold(desired, i32::min);
    let highest = history.recommendations(ago(down, now)).fold(desired, i32::max);
    history.recommend(desired, now);
    let why = if desired >= current { UP_STABILIZED } else { DOWN_STABILIZED };
    Limited::new(current.max(lowest).min(highest), why)
}

/// Holds `desired` against the policies and the bounds of the autoscaler.
pub(super) fn limit(
    behavior: Option<&Behavior>,
    bounds: Bounds,
    desired: i32,
    history: &History,
    now: Timestamp,
) -> Limited {
    match behavior {
        None => limit_by_default(bounds, desired),
        Some(behavior) => limit_by_policies(behavior, bounds, desired, history, now),
    }
}

/// Without rules, a target at most doubles, or grows to 4 replicas.
fn limit_by_default(bounds: Bounds, desired: i32) -> Limited {
    let fastest = bounds.current.saturating_mul(2).max(4);
    let (most, why) = if bounds.most > fastest { (fastest, UP_LIMIT) } else { (bounds.most, TOO_MANY) };
    if desired < bounds.least {
        Limited::new(bounds.least, TOO_FEW)
    } else if desired > most {
        Limited::new(most, why)
    } else {
        Limited::new(desired, WITHIN)
    }
}

fn limit_by_policies(
    behavior: &Behavior,
    bounds: Bounds,
    desired: i32,
    history: &History,
    now: Timestamp,
) -> Limited {
    let policies = Policies { history, current: bounds.current, now };
    if desired > bounds.current {
        let fastest = policies.largest_size(behavior.scale_up.as_ref()).max(bounds.current);
        let (most, why) = if bounds.most > fastest { (fastest, UP_LIMIT) } else { (bounds.most, TOO_MANY) };
        if desired > most {
            return Limited::new(most, why);
        }
    } else if desired < bounds.current {
        let fastest = policies.smallest_size(behavior.scale_down.as_ref()).min(bounds.current);
        let (least, why) =
            if bounds.least < fastest { (fastest, DOWN_LIMIT) } else { (bounds.least, TOO_FEW) };
        if desired < least {
            return Limited::new(least, why);
        }
    }
    Limited::new(desired, WITHIN)
}

/// The sizes that the policies of a direction allow.
struct Policies<'a> {
    history: &'a History,
    current: i32,
    now: Timestamp,
}

impl Policies<'_> {
    fn largest_size(&self, rules: Option<&HPAScalingRules>) -> i32 {
        let sizes = self.sizes(rules, |start, policy| {
            if policy.type_ == "Percent" {
                // Rounded up, so that a small target grows at all.
                (f64::from(start) * (1.0 + f64::from(policy.value) / 100.0)).ceil() as i32
            } else {
                start.saturating_add(policy.value)
            }
        });
        match selected(rules) {
            "Disabled" => self.current,
            "Min" => sizes.into_iter().min().unwrap_or(i32::MAX),
            _ => sizes.into_iter().max().unwrap_or(i32::MIN),
        }
    }

    fn smallest_size(&self, rules: Option<&HPAScalingRules>) -> i32 {
        let sizes = self.sizes(rules, |start, policy| {
            if policy.type_ == "Percent" {
                (f64::from(start) * (1.0 - f64::from(policy.value) / 100.0)) as i32
            } else {
                start.saturating_sub(policy.value)
            }
        });
        match selected(rules) {
            "Disabled" => self.current,
            // The smallest change gives the largest size.
            "Min" => sizes.into_iter().max().unwrap_or(i32::MIN),
            _ => sizes.into_iter().min().unwrap_or(i32::MAX),
        }
    }

    fn sizes(
        &self,
        rules: Option<&HPAScalingRules>,
        size: impl Fn(i32, &HPAScalingPolicy) -> i32,
    ) -> Vec<i32> {
        let policies = rules.iter().flat_map(|rules| rules.policies.iter().flatten());
        policies
            .map(|policy| {
                size(self.history.at_start_of(policy.period_seconds, self.current, self.now), policy)
            })
            .collect()
    }
}

fn selected(rules: Option<&HPAScalingRules>) -> &str {
    rules.and_then(|rules| rules.select_policy.as_deref()).unwrap_or("Max")
}

#[cfg(test)]
mod tests;
