//! Disruption budgets.

mod pod_disruption_budget;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[("poddisruptionbudgets", &pod_disruption_budget::KIND)];
