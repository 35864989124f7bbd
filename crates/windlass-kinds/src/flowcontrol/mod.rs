//! Flow schemas and priority levels.

mod flow_schema;
mod priority_level_configuration;

use crate::kind::{Kind, KindConfig, Writes};

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[
    ("flowschemas", &flow_schema::KIND),
    ("prioritylevelconfigurations", &priority_level_configuration::KIND),
];

const CONFIG: KindConfig = KindConfig { writes: Writes::STATUS_ONLY, ..KindConfig::SPEC };
