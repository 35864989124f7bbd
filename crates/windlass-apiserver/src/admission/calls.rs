//! The calls of webhooks, for the metrics `apiserver_admission_webhook_*`.

use std::time::Duration;

use windlass_schema::go_quote;

use super::{CallError, Operation};
use crate::counters::{Counters, Histograms};

const BOUNDS: [f64; 8] = [0.005, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0, 25.0];
/// The largest code in metrics. Larger codes count as this code.
const LARGEST_CODE: u16 = 600;

/// Counters of the calls of a server's webhooks.
#[derive(Debug)]
pub(crate) struct Calls {
    pub(crate) durations: Histograms<8>,
    pub(crate) requests: Counters,
    pub(crate) rejections: Counters,
    pub(crate) failed_open: Counters,
    /// The webhooks that were not called because of their match conditions.
    pub(crate) exclusions: Counters,
    /// The match conditions that failed.
    pub(crate) condition_errors: Counters,
}

impl Default for Calls {
    fn default() -> Self {
        let (requests, rejections, failed_open) = Default::default();
        let (exclusions, condition_errors) = Default::default();
        let durations = Histograms::new(BOUNDS);
        Self { durations, requests, rejections, failed_open, exclusions, condition_errors }
    }
}

/// A call of a webhook.
pub(super) struct Call<'a> {
    pub(super) webhook: &'a str,
    /// `admit` or `validating`.
    pub(super) step: &'static str,
    pub(super) operation: Operation,
    /// True if a failure of the webhook does not refuse the request.
    pub(super) ignores_failure: bool,
}

impl Calls {
    /// Counts a call that did not happen, because match conditions do not hold or fail.
    pub(super) fn count_conditions(&self, call: &Call<'_>, is_failure: bool) {
        let (name, step, operation) = (go_quote(call.webhook), call.step, call.operation.name());
        let labels = format!("kind=\"webhook\",name={name},operation=\"{operation}\",type=\"{step}\"");
        if is_failure {
            self.condition_errors.add(labels.clone());
        }
        if !is_failure || call.ignores_failure {
            self.exclusions.add(labels);
        }
    }

    /// Counts a call, with the outcome.
    pub(super) fn count(&self, call: &Call<'_>, outcome: Result<(), &CallError>, took: Duration) {
        let (code, rejection) = match outcome {
            Ok(()) => (200, None),
            Err(CallError::Failed { code, .. }) => (*code, Some("calling_webhook_error")),
            Err(CallError::Denied(error)) => (error.code(), Some("no_error")),
            Err(CallError::Refused(_)) => (0, Some("apiserver_internal_error")),
        };
        let code = code.min(LARGEST_CODE);
        let fails_open = call.ignores_failure && matches!(outcome, Err(CallError::Failed { .. }));
        let rejection = rejection.filter(|_| !fails_open);
        let (name, step, operation) = (go_quote(call.webhook), call.step, call.operation.name());
        let rejected = rejection.is_some();
        self.requests.add(format!(
            "code=\"{code}\",name={name},operation=\"{operation}\",rejected=\"{rejected}\",type=\"{step}\""
        ));
        self.durations.observe(
            format!("name={name},operation=\"{operation}\",rejected=\"{rejected}\",type=\"{step}\""),
            took,
        );
        if let Some(error) = rejection {
            self.rejections.add(format!(
                "error_type=\"{error}\",name={name},operation=\"{operation}\",rejection_code=\"{code}\",type=\"{step}\""
            ));
        }
        if fails_open {
            self.failed_open.add(format!("name={name},type=\"{step}\""));
        }
    }
}
