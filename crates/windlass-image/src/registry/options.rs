//! The options of a client of registries.

use std::path::PathBuf;
use std::time::Duration;

use super::Credentials;

/// The options of a client of registries.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RegistryOptions {
    /// Files with certificates, in PEM, that are trusted beside those of the machine. Default: none.
    pub ca_files: Vec<PathBuf>,
    /// True if all registries are reached by plain HTTP. Default: false.
    pub plain_http: bool,
    /// Registries, as `mock.com:5000`, that are reached by plain HTTP if HTTPS fails. Loopback addresses are always among them. Default: none.
    pub insecure_registries: Vec<String>,
    /// The names and passwords. Default: none.
    pub credentials: Credentials,
    /// The pause before a request is repeated the first time; the pause doubles. Default: 500 ms.
    pub back_off: Duration,
    /// The longest wait for a connection, for a reply, and between two parts of a reply. Default: 60 s.
    pub timeout: Duration,
}

impl Default for RegistryOptions {
    fn default() -> Self {
        Self {
            ca_files: Vec::new(),
            plain_http: false,
            insecure_registries: Vec::new(),
            credentials: Credentials::default(),
            back_off: Duration::from_millis(500),
            timeout: Duration::from_secs(60),
        }
    }
}

impl RegistryOptions {
    pub(super) fn is_insecure(&self, registry: &str) -> bool {
        self.insecure_registries.iter().any(|insecure| insecure == registry)
    }
}
