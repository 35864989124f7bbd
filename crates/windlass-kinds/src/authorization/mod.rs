//! Access reviews, which are answered and not stored.

use crate::kind::{AdmittedBy, Kind, KindConfig};

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[
    ("localsubjectaccessreviews", &LOCAL_REVIEWS),
    ("selfsubjectaccessreviews", &REVIEWS),
    ("selfsubjectrulesreviews", &REVIEWS),
    ("subjectaccessreviews", &REVIEWS),
];

/// A policy or webhook that refuses reviews may break the cluster.
const CONFIG: KindConfig = KindConfig { admitted_by: AdmittedBy::None, ..KindConfig::SPEC };

static REVIEWS: Kind = Kind::new(CONFIG);
static LOCAL_REVIEWS: Kind = Kind::new(KindConfig { needs_namespace: false, ..CONFIG });
