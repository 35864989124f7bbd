//! The types of the API groups, where the article has `pkg/apis`.

/// The group `samplecrd.k8s.io`.
pub mod samplecrd {
    pub mod v1;
}
