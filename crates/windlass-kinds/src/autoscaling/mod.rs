//! Horizontal pod autoscalers, and the scales of workloads.

mod horizontal_pod_autoscaler;
mod scale;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] =
    &[("horizontalpodautoscalers", &horizontal_pod_autoscaler::KIND), ("scales", &scale::KIND)];
