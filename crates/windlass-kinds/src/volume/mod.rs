//! Volumes: their sources, and claims for them.

pub(crate) mod claim;
pub(crate) mod source;
