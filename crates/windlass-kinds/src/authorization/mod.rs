//! Access reviews, which are answered and not stored.

use crate::kind::{Kind, KindConfig};

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[("localsubjectaccessreviews", &LOCAL_REVIEWS)];

static LOCAL_REVIEWS: Kind = Kind::new(KindConfig { needs_namespace: false, ..KindConfig::SPEC });
