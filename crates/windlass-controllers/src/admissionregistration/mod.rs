//! Admission policies.

pub(crate) mod validating_admission_policy;
