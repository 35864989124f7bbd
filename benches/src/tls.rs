//! The certificate of the byte server.

use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::PathBuf;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Creates a certificate for 127.0.0.1 and writes the certificate to `file`, for the trust of clients.
pub(crate) fn acceptor(file: &PathBuf) -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()]);
    let rcgen::CertifiedKey { cert, signing_key } = made.expect("a certificate can be made");
    std::fs::write(file, cert.pem()).expect("the certificate can be written");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring knows TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .expect("the key is the certificate's");
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    TlsAcceptor::from(Arc::new(config))
}
