//! Reviews of users, which are answered and not stored.

use crate::kind::{AdmittedBy, Kind, KindConfig};

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[("selfsubjectreviews", &REVIEWS), ("tokenreviews", &REVIEWS)];

/// A policy or webhook that refuses reviews may break the cluster.
static REVIEWS: Kind = Kind::new(KindConfig { admitted_by: AdmittedBy::None, ..KindConfig::SPEC });
