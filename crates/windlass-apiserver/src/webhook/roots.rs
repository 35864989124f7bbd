//! The certificates that the system trusts, for webhooks without a `caBundle`.

use std::sync::OnceLock;

use rustls_pki_types::CertificateDer;

/// Returns the certificates that the system trusts. The certificates are read once.
pub(super) async fn system() -> &'static [CertificateDer<'static>] {
    static LOADED: OnceLock<Vec<CertificateDer<'static>>> = OnceLock::new();
    if let Some(loaded) = LOADED.get() {
        return loaded;
    }
    let load = || rustls_native_certs::load_native_certs().certs;
    let certificates = tokio::task::spawn_blocking(load).await.unwrap_or_default();
    LOADED.get_or_init(|| certificates)
}
