//! A quota as admission sees it.

use serde_json::Value;

use crate::amounts::{Amounts, amounts};
use crate::scope::ScopeRequirement;

/// A `ResourceQuota`: what its status limits, what is used, and which objects it is about.
#[derive(Clone, Debug)]
pub struct Quota {
    /// The name of the object.
    pub name: String,
    /// `status.hard`: the limits that are enforced.
    pub hard: Amounts,
    /// `status.used`: what is counted so far.
    pub used: Amounts,
    /// `spec.scopes` and `spec.scopeSelector`. All of them must match an object that counts.
    pub(crate) scopes: Vec<ScopeRequirement>,
}

impl Quota {
    /// Reads a `ResourceQuota`.
    pub fn of(object: &Value) -> Self {
        Self {
            name: object["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
            hard: amounts(&object["status"]["hard"]),
            used: amounts(&object["status"]["used"]),
            scopes: ScopeRequirement::all_of(&object["spec"]),
        }
    }

    /// Returns the quota with the limits of its spec, and nothing used: as the quota controller begins to count.
    pub fn of_spec(object: &Value) -> Self {
        Self { hard: amounts(&object["spec"]["hard"]), used: Amounts::new(), ..Self::of(object) }
    }
}
