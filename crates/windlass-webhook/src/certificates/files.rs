//! Certificates from files. Changed files are read again.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use prometheus_client::{metrics::counter::Counter, registry::Registry};

use super::{CertificateStore, ServingCertificate};

/// The pause after a failed read. A mounted Secret is exchanged file by file as seen from outside: the next read succeeds.
const RETRY: Duration = Duration::from_secs(1);

/// The files of a certificate and a key, such as a mounted Secret of the type `kubernetes.io/tls`.
///
/// [`watch`](Self::watch) reads the files every 10 s and exchanges the certificate of a [`CertificateStore`]
/// when the contents change. The files may be replaced in place, by renaming, or by the symbolic links of a
/// mounted Secret.
///
/// ```no_run
/// use windlass_webhook::certificates::{CertificateFiles, CertificateMetrics, CertificateStore};
///
/// # async fn example() {
/// let (files, store) = (CertificateFiles::in_folder("/etc/metrics-certs"), CertificateStore::default());
/// let metrics = CertificateMetrics::default();
/// tokio::spawn({
///     let store = store.clone();
///     async move { files.watch(&store, &metrics).await }
/// });
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct CertificateFiles {
    folder: PathBuf,
    certificate: String,
    key: String,
    interval: Duration,
}

impl Default for CertificateFiles {
    /// Returns `tls.crt` and `tls.key` in `k8s-webhook-server/serving-certs` in the folder for temporary
    /// files, as in controller-runtime.
    fn default() -> Self {
        Self::in_folder(std::env::temp_dir().join("k8s-webhook-server").join("serving-certs"))
    }
}

impl CertificateFiles {
    /// Uses `tls.crt` and `tls.key` in a folder.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            certificate: "tls.crt".to_owned(),
            key: "tls.key".to_owned(),
            interval: Duration::from_secs(10),
        }
    }

    /// Sets the name of the file with the certificate chain. Default: `tls.crt`.
    pub fn certificate_name(mut self, name: impl Into<String>) -> Self {
        self.certificate = name.into();
        self
    }

    /// Sets the name of the file with the private key. Default: `tls.key`.
    pub fn key_name(mut self, name: impl Into<String>) -> Self {
        self.key = name.into();
        self
    }

    /// Sets the time between two reads. Default: 10 s.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of the file with the certificate chain.
    pub fn certificate_path(&self) -> PathBuf {
        self.folder.join(&self.certificate)
    }

    /// Reads the certificate and the key.
    ///
    /// # Errors
    ///
    /// A file is missing or cannot be used. The error names the file.
    pub async fn read(&self, metrics: &CertificateMetrics) -> io::Result<ServingCertificate> {
        metrics.reads.inc();
        let read = self.read_files().await;
        if read.is_err() {
            metrics.errors.inc();
        }
        read
    }

    async fn read_files(&self) -> io::Result<ServingCertificate> {
        let read = async |name: &str| {
            let path = self.folder.join(name);
            let contents = tokio::fs::read(&path).await;
            contents.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
        };
        let (chain, key) = (read(&self.certificate).await?, read(&self.key).await?);
        ServingCertificate::from_pem(&chain, &key).map_err(|error| {
            let text = format!("{} and {}: {error}", self.certificate_path().display(), self.key);
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    /// Reads the files periodically, and sets the certificate of `store` after a change. Never returns.
    ///
    /// Missing or damaged files are logged, and the certificate stays.
    pub async fn watch(&self, store: &CertificateStore, metrics: &CertificateMetrics) {
        let mut failure = String::new();
        loop {
            let pause = match self.read(metrics).await {
                Ok(certificate) => {
                    let not_after = certificate.not_after();
                    if store.set(certificate) {
                        tracing::info!(path = %self.certificate_path().display(), %not_after, "certificate loaded");
                    }
                    failure.clear();
                    self.interval
                }
                Err(error) => {
                    let error = error.to_string();
                    if failure != error {
                        tracing::error!(error, "cannot read the certificate; reading again every second");
                        failure = error;
                    }
                    RETRY.min(self.interval)
                }
            };
            tokio::time::sleep(pause).await;
        }
    }
}

/// The metrics of certificates that are read from files. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct CertificateMetrics {
    reads: Counter,
    errors: Counter,
}

impl CertificateMetrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        // The encoder adds `_total`.
        registry.register(
            "certwatcher_read_certificate",
            "Total number of certificate reads",
            self.reads.clone(),
        );
        registry.register(
            "certwatcher_read_certificate_errors",
            "Total number of certificate read errors",
            self.errors.clone(),
        );
    }
}
