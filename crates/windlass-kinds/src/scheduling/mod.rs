//! Priority classes.

pub(crate) mod priority_class;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[("priorityclasses", &priority_class::KIND)];
