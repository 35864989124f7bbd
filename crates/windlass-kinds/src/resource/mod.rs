//! Claims for devices.

mod configuration;
mod device_class;
mod device_taint_rule;
mod limits;
mod names;
mod resource_claim;
mod resource_slice;
mod selectors;
mod taints;

use crate::kind::{Kind, KindConfig};

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[
    ("deviceclasses", &device_class::KIND),
    ("devicetaintrules", &device_taint_rule::KIND),
    ("resourceclaims", &resource_claim::CLAIMS),
    ("resourceclaimtemplates", &resource_claim::TEMPLATES),
    ("resourceslices", &resource_slice::KIND),
];

const CLASSES: KindConfig = KindConfig {
    returns_deleted_object: true,
    unsupported: Some("no devices are given to pods, because the scheduler does not allocate devices"),
    ..KindConfig::SPEC
};
