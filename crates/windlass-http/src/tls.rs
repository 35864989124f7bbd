//! The TLS configuration, read again when its files change.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use kube_client::{Config, client::ConfigExt};
use parking_lot::Mutex;
use rustls::ClientConfig;

/// How long the files are trusted to be unchanged.
const CHECK_INTERVAL: Duration = Duration::from_secs(60);

/// The TLS configurations of new connections.
#[derive(Clone)]
pub(crate) struct TlsConfigs {
    /// Offers HTTP/2 and HTTP/1.1.
    pub(crate) any: Arc<ClientConfig>,
    /// Offers HTTP/1.1 only.
    pub(crate) http1: Arc<ClientConfig>,
    /// Grows when the files change: connections of an earlier generation get no further requests.
    pub(crate) generation: u64,
}

/// The TLS settings of the client's configuration.
pub(crate) struct TlsFiles {
    config: Arc<Config>,
    paths: Vec<PathBuf>,
    loaded: Mutex<Loaded>,
}

struct Loaded {
    configs: TlsConfigs,
    /// A hash of the files' contents.
    contents: u64,
    made_at: Instant,
    checked_at: Instant,
}

impl TlsFiles {
    /// Reads the certificates of a configuration. Runs its credential plugin, which may return a certificate.
    pub(crate) fn new(config: &Arc<Config>) -> Result<Self, kube_client::Error> {
        let auth = &config.auth_info;
        let identity = [&auth.client_certificate, &auth.client_key].into_iter().flatten().map(PathBuf::from);
        let paths: Vec<PathBuf> = identity.chain(config.root_cert_file.clone()).collect();
        let contents = hash(&paths);
        let now = Instant::now();
        let loaded = Loaded { configs: TlsConfigs::new(config, 0)?, contents, made_at: now, checked_at: now };
        Ok(Self { config: config.clone(), paths, loaded: Mutex::new(loaded) })
    }

    /// Returns the configurations of new connections.
    pub(crate) fn configs(&self) -> TlsConfigs {
        self.loaded.lock().configs.clone()
    }

    /// Returns the generation of new connections.
    pub(crate) fn generation(&self) -> u64 {
        self.loaded.lock().configs.generation
    }

    /// Returns true once per minute if there are files that may have changed.
    pub(crate) fn is_check_due(&self, now: Instant) -> bool {
        if self.paths.is_empty() {
            return false;
        }
        let mut loaded = self.loaded.lock();
        let is_due = now.saturating_duration_since(loaded.checked_at) >= CHECK_INTERVAL;
        if is_due {
            loaded.checked_at = now;
        }
        is_due
    }

    /// Reads the files again, and the certificate of a credential plugin. Files that cannot be used leave the last files in use. Blocks.
    pub(crate) fn reload(&self) {
        let contents = hash(&self.paths);
        let generation = {
            let loaded = self.loaded.lock();
            if contents == loaded.contents && !self.has_old_plugin_certificate(&loaded) {
                return;
            }
            loaded.configs.generation + 1
        };
        let configs = TlsConfigs::new(&self.config, generation);
        let mut loaded = self.loaded.lock();
        loaded.made_at = Instant::now();
        match configs {
            Ok(configs) => {
                loaded.configs = configs;
                loaded.contents = contents;
            }
            Err(error) => {
                tracing::warn!(%error, "certificates cannot be read again; the last certificates are used");
            }
        }
    }

    /// Returns true if a credential plugin returned the client certificate, a minute ago or earlier.
    fn has_old_plugin_certificate(&self, loaded: &Loaded) -> bool {
        let auth = &self.config.auth_info;
        auth.exec.is_some()
            && auth.client_certificate.is_none()
            && auth.client_certificate_data.is_none()
            && loaded.configs.any.client_auth_cert_resolver.has_certs()
            && loaded.made_at.elapsed() >= CHECK_INTERVAL
    }
}

impl TlsConfigs {
    fn new(config: &Config, generation: u64) -> Result<Self, kube_client::Error> {
        let mut any = config.rustls_client_config()?;
        let mut http1 = any.clone();
        any.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        http1.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { any: Arc::new(any), http1: Arc::new(http1), generation })
    }
}

/// Returns a hash of the contents of files. A file that cannot be read counts as empty.
fn hash(paths: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for path in paths {
        std::fs::read(path).unwrap_or_default().hash(&mut hasher);
    }
    hasher.finish()
}
