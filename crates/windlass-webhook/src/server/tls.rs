//! TLS settings.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    server::{NoServerSessionStorage, WebPkiClientVerifier},
};
use rustls_pki_types::{CertificateDer, pem::PemObject};

use super::CertificateSource;
use crate::certificates::CertificateStore;

/// A server that cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ServerError(String);

impl ServerError {
    pub(super) fn new(message: impl ToString) -> Self {
        Self(message.to_string())
    }
}

/// Makes the TLS settings of a server: the certificate of `store`, HTTP/1.1 and, if `http2`, HTTP/2, and client certificates that are
/// required if `client_ca`, PEM, is given.
///
/// # Errors
///
/// `client_ca` has no certificate.
pub fn server_config(
    store: &CertificateStore,
    client_ca: Option<&[u8]>,
    http2: bool,
) -> Result<Arc<ServerConfig>, ServerError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(ServerError::new)?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(pem) => {
            let mut roots = RootCertStore::empty();
            let certificates = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
            roots.add_parsable_certificates(certificates);
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier =
                verifier.build().map_err(|error| ServerError(format!("the client CA: {error}")))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder.with_cert_resolver(Arc::new(store.clone()));
    config.alpn_protocols = http2.then(|| b"h2".to_vec()).into_iter().chain([b"http/1.1".to_vec()]).collect();
    // A resumed session would not see the new certificate; the API server keeps connections open anyway.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

/// Reads the client authorities. A relative path is that of a file beside the certificate.
pub(super) async fn read_client_ca(source: &CertificateSource, path: &Path) -> Result<Vec<u8>, ServerError> {
    let path: PathBuf = match source {
        CertificateSource::Files(files) => files.folder().join(path),
        CertificateSource::SelfIssued(_) => path.to_owned(),
    };
    let read = tokio::fs::read(&path).await;
    read.map_err(|error| ServerError(format!("cannot read the client CA {}: {error}", path.display())))
}
