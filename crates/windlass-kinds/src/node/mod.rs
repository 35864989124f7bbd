//! Runtime classes.

mod runtime_class;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[("runtimeclasses", &runtime_class::KIND)];
