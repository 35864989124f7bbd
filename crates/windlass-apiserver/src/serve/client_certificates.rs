//! The check of client certificates.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::Authority;
use super::listen::ListenErrorKind;
use crate::auth::{ClientAuth, certificate_identity};

/// Asks clients for a certificate and checks it after the handshake.
///
/// A certificate that is not valid does not end the handshake, because its holder may have a bearer token as well. The
/// holder must still prove that it has the key.
pub(super) struct ClientCertificates(Arc<dyn ClientCertVerifier>);

impl ClientCertificates {
    /// The check of certificates that `authority`, or one of `others`, has signed.
    pub(super) fn of(
        authority: &Authority,
        others: &[CertificateDer<'static>],
    ) -> Result<Self, ListenErrorKind> {
        let mut roots = RootCertStore::empty();
        for root in std::iter::once(authority.certificate_der()).chain(others) {
            roots.add(root.clone())?;
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Self(verifier.allow_unauthenticated().build()?))
    }

    /// Authenticates the holder of a certificate chain. An empty chain is no certificate.
    pub(super) fn authenticate(&self, chain: &[CertificateDer<'_>]) -> ClientAuth {
        let Some((certificate, intermediates)) = chain.split_first() else { return ClientAuth::NoOpinion };
        match self.0.verify_client_cert(certificate, intermediates, UnixTime::now()) {
            Ok(_) => certificate_identity(certificate).map_or(ClientAuth::NoOpinion, ClientAuth::Verified),
            Err(error) => {
                tracing::debug!(%error, "a client certificate is not valid");
                ClientAuth::Invalid
            }
        }
    }
}

impl fmt::Debug for ClientCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificates")
    }
}

impl ClientCertVerifier for ClientCertificates {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
