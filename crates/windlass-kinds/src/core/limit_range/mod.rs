//! Limit ranges.

mod defaults;
mod validate;

use crate::kind::{Kind, KindConfig};

pub(crate) static KIND: Kind = Kind { defaults: &LimitRanges, validate: &LimitRanges, ..Kind::new(CONFIG) };

const CONFIG: KindConfig = KindConfig { create_on_update: true, ..KindConfig::DATA };

pub(super) struct LimitRanges;
