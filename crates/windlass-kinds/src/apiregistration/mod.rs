//! API services.

pub mod api_service;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[("apiservices", &api_service::KIND)];
