//! Conditions of a status: type, status, reason, message, and the time of the last transition.

use jiff::Timestamp;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Sets a condition in a list, as the API conventions require: `lastTransitionTime` changes only with the
/// status, and there is one condition of each type. Further conditions of the same type, from another writer,
/// are removed. Returns whether the list has changed.
///
/// ```
/// use windlass_runtime::conditions::{self, Condition};
///
/// let mut conditions = Vec::new();
/// let ready = conditions::condition("Ready", true, "AllRunning", "3 of 3 pods run").observed_generation(Some(7));
/// let now = jiff::Timestamp::UNIX_EPOCH;
/// assert!(conditions::set(&mut conditions, ready.clone(), now));
/// assert!(!conditions::set(&mut conditions, ready, now + jiff::SignedDuration::from_secs(60)), "the same again");
/// # let _: &Vec<Condition> = &conditions;
/// ```
pub fn set(conditions: &mut Vec<Condition>, wanted: NewCondition, now: Timestamp) -> bool {
    let NewCondition { type_, status, reason, message, observed_generation } = wanted;
    let status = status.to_owned();
    let before = conditions.len();
    let mut is_first = true;
    conditions.retain(|known| known.type_ != type_ || std::mem::take(&mut is_first));
    let removed = conditions.len() < before;
    match conditions.iter_mut().find(|known| known.type_ == type_) {
        None => {
            let last_transition_time = Time(now);
            conditions.push(Condition {
                type_,
                status,
                reason,
                message,
                observed_generation,
                last_transition_time,
            });
            true
        }
        Some(known) => {
            let since = if known.status == status { known.last_transition_time.clone() } else { Time(now) };
            let next = Condition {
                type_,
                status,
                reason,
                message,
                observed_generation,
                last_transition_time: since,
            };
            let changed = removed || *known != next;
            *known = next;
            changed
        }
    }
}

/// Removes the conditions of this type from a list. Returns whether there was a condition of this type.
///
/// ```
/// use windlass_runtime::conditions;
///
/// let mut conditions = Vec::new();
/// let degraded = conditions::condition("Degraded", true, "PodFailed", "1 of 3 pods fails");
/// conditions::set(&mut conditions, degraded, jiff::Timestamp::UNIX_EPOCH);
/// assert!(conditions::remove(&mut conditions, "Degraded"));
/// assert!(!conditions::remove(&mut conditions, "Degraded"));
/// ```
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) -> bool {
    let before = conditions.len();
    conditions.retain(|condition| condition.type_ != type_);
    conditions.len() < before
}

/// Returns the condition of this type.
///
/// ```
/// use windlass_runtime::conditions;
///
/// let mut conditions = Vec::new();
/// let ready = conditions::condition("Ready", false, "Starting", "2 of 3 pods run");
/// conditions::set(&mut conditions, ready, jiff::Timestamp::UNIX_EPOCH);
/// let found = conditions::find(&conditions, "Ready");
/// assert_eq!(found.map(|ready| ready.reason.as_str()), Some("Starting"));
/// assert_eq!(conditions::find(&conditions, "Degraded"), None);
/// ```
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Returns whether the list has a condition of this type with status `True`.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    is_present_and_equal(conditions, type_, "True")
}

/// Returns whether the list has a condition of this type with status `False`. A missing condition is neither true nor false.
///
/// ```
/// use windlass_runtime::conditions;
///
/// let mut conditions = Vec::new();
/// let ready = conditions::condition("Ready", false, "Starting", "2 of 3 pods run");
/// conditions::set(&mut conditions, ready, jiff::Timestamp::UNIX_EPOCH);
/// assert!(conditions::is_false(&conditions, "Ready"));
/// assert!(!conditions::is_false(&conditions, "Degraded"));
/// ```
pub fn is_false(conditions: &[Condition], type_: &str) -> bool {
    is_present_and_equal(conditions, type_, "False")
}

/// Returns whether the list has a condition of this type with this status: `True`, `False` or `Unknown`.
///
/// ```
/// use windlass_runtime::conditions;
///
/// let mut conditions = Vec::new();
/// let ready = conditions::condition("Ready", false, "Lost", "the node does not answer").unknown();
/// conditions::set(&mut conditions, ready, jiff::Timestamp::UNIX_EPOCH);
/// assert!(conditions::is_present_and_equal(&conditions, "Ready", "Unknown"));
/// ```
pub fn is_present_and_equal(conditions: &[Condition], type_: &str, status: &str) -> bool {
    conditions.iter().any(|condition| condition.type_ == type_ && condition.status == status)
}

/// Makes a condition with status `True` or `False`; use [`NewCondition::unknown`] when the status is not known.
pub fn condition(
    type_: impl Into<String>,
    holds: bool,
    reason: impl Into<String>,
    message: impl Into<String>,
) -> NewCondition {
    NewCondition {
        type_: type_.into(),
        status: if holds { "True" } else { "False" },
        reason: reason.into(),
        message: message.into(),
        observed_generation: None,
    }
}

/// A condition for [`set`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition {
    type_: String,
    status: &'static str,
    reason: String,
    message: String,
    observed_generation: Option<i64>,
}

impl NewCondition {
    /// Sets the status to `Unknown`.
    pub fn unknown(mut self) -> Self {
        self.status = "Unknown";
        self
    }

    /// Sets the generation of the object that the condition was computed from.
    pub fn observed_generation(mut self, generation: Option<i64>) -> Self {
        self.observed_generation = generation;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_condition_of_each_type() {
        let now = Timestamp::UNIX_EPOCH;
        let mut conditions = Vec::new();
        for (type_, holds) in [("Ready", true), ("Bound", true), ("Other", true)] {
            set(&mut conditions, condition(type_, holds, "Mine", ""), now);
        }
        conditions.insert(2, Condition { reason: "Foreign".to_owned(), ..conditions[1].clone() });
        assert!(set(&mut conditions, condition("Bound", true, "Mine", ""), now), "the second one is removed");
        let found: Vec<String> =
            conditions.iter().map(|known| format!("{} {}", known.type_, known.reason)).collect();
        assert_eq!(found, ["Ready Mine", "Bound Mine", "Other Mine"]);
        assert!(!set(&mut conditions, condition("Bound", true, "Mine", ""), now));
    }
}
