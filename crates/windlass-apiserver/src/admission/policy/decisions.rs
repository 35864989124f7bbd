//! The decisions of policies, for the metrics `apiserver_*_admission_policy_check_total`.

use windlass_schema::go_quote;

use super::definition::{Binding, Definition};
use crate::counters::Counters;

/// Counters of the decisions of a server's policies.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    /// The violations and failures of validating policies.
    pub(crate) validating: Counters,
    /// The mutations of mutating policies.
    pub(crate) mutating: Counters,
}

impl Decisions {
    /// Counts a violation or a failure. `action` is the effect: `deny`, `warn`, `audit` or `allow`.
    pub(super) fn count_check(
        &self,
        definition: &Definition,
        binding: &Binding,
        message: &str,
        action: &'static str,
    ) {
        let (policy, binding) = (go_quote(&definition.name), go_quote(&binding.name));
        let error = error_type(message);
        self.validating.add(format!(
            "enforcement_action=\"{action}\",error_type=\"{error}\",policy={policy},policy_binding={binding}"
        ));
    }

    /// Counts a mutation. `error` is the text of a failure.
    pub(super) fn count_mutation(&self, definition: &Definition, binding: &Binding, error: Option<&str>) {
        let (policy, binding) = (go_quote(&definition.name), go_quote(&binding.name));
        let error = error.map_or("no_error", error_type);
        self.mutating.add(format!("error_type=\"{error}\",policy={policy},policy_binding={binding}"));
    }
}

/// Returns the kind of a failure, as kube-apiserver names the kind.
fn error_type(message: &str) -> &'static str {
    if message.starts_with("compilation") {
        "compile_error"
    } else if message.starts_with("validation failed due to running out of cost budget") {
        "out_of_budget"
    } else {
        "invalid_error"
    }
}
