//! Endpoint slices.

mod endpoint_slice;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[("endpointslices", &endpoint_slice::KIND)];
