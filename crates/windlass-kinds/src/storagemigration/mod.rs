//! The migration of stored objects to another version.

mod storage_version_migration;

use crate::kind::Kind;

/// The kinds by resource.
pub(crate) static KINDS: &[(&str, &Kind)] = &[("storageversionmigrations", &storage_version_migration::KIND)];
