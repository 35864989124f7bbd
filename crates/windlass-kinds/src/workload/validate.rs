//! The validation that workloads have in common.

use serde_json::Value;
use windlass_schema::FieldError;

use super::counters::Counters;
use super::template::template_warnings;
use crate::checks::immutable;
use crate::kind::{Validate, WriteContext};

/// The validation of a kind of workload: the rules of the kind for the spec, and the rules of all workloads.
pub(crate) struct WorkloadValidation {
    /// Returns the errors of a spec.
    pub(crate) spec: fn(&Value) -> Vec<FieldError>,
    /// The counters in the status.
    pub(crate) counters: Counters,
    /// True if the selector never changes.
    pub(crate) has_fixed_selector: bool,
    /// True if the names of pods begin with the name of the workload.
    pub(crate) names_pods: bool,
}

impl Validate for WorkloadValidation {
    fn validate(&self, object: &Value) -> Vec<FieldError> {
        (self.spec)(&object["spec"])
    }

    fn validate_change(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        if self.has_fixed_selector { immutable(object, old, "/spec/selector") } else { Vec::new() }
    }

    fn validate_status(&self, object: &Value, old: &Value) -> Vec<FieldError> {
        self.counters.validate(object, old)
    }

    fn warnings(&self, cx: &WriteContext<'_>, object: &Value, old: Option<&Value>) -> Vec<String> {
        if cx.subresource.is_empty() { template_warnings(object, old, self.names_pods) } else { Vec::new() }
    }
}
