//! A quota for admission.

use serde_json::Value;

use super::resource_list::{ResourceList, amounts};
use super::scope::ScopeRequirement;

/// A `ResourceQuota`: the limits in the status, the usage, and the selected objects.
#[derive(Clone, Debug)]
pub struct Quota {
    /// The name of the object.
    pub name: String,
    /// `status.hard`: the limits that are enforced.
    pub hard: ResourceList,
    /// `status.used`: the usage until now.
    pub used: ResourceList,
    /// `spec.scopes` and `spec.scopeSelector`. An object counts only if all scopes match.
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

    /// Returns the quota with the limits of the spec, and no usage: the start of the quota controller's
    /// count.
    pub fn of_spec(object: &Value) -> Self {
        Self { hard: amounts(&object["spec"]["hard"]), used: ResourceList::new(), ..Self::of(object) }
    }
}
