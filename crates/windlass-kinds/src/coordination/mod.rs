//! Leases.

mod lease;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[("leases", &lease::KIND)];
