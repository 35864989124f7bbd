//! Certificates of an HTTPS server: from files, or self-issued by the operator.

mod authority;
mod bundle;
mod files;
mod rotation;
mod secret;
mod store;

#[cfg(test)]
mod tests;

pub use self::{
    bundle::{CaBundle, ServedAt},
    files::{CertificateFiles, CertificateMetrics},
    rotation::{CertificateDurations, CertificateState, Plan, Rotation, SecretWrite},
    secret::SecretState,
    store::{CertificateError, CertificateStore, ServingCertificate},
};
