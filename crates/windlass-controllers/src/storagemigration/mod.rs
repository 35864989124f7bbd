//! The controllers of the group `storagemigration.k8s.io`.

pub(crate) mod storage_version_migration;
