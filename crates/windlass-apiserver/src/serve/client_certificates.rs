//! The check of client certificates.

mod chain;
mod issuers;
mod possession;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, ring};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_cert::Certificate;

pub(super) use self::chain::ClientChain;
use self::issuers::Issuers;
use super::CertificateAuthority;
use super::listen::ListenErrorKind;
use crate::auth::{ClientAuth, certificate_user};

/// Asks clients for a certificate and checks the certificate after the handshake.
///
/// An invalid certificate does not end the handshake, because the client may have a bearer token as well. The
/// client must still prove possession of the key.
pub(super) struct ClientCertificates {
    verifier: Arc<dyn ClientCertVerifier>,
    issuers: Issuers,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertificates {
    /// Returns a check for certificates that `authority`, or an authority in `others`, has signed.
    pub(super) fn of(
        authority: &CertificateAuthority,
        others: &[CertificateDer<'static>],
    ) -> Result<Self, ListenErrorKind> {
        let mut roots = RootCertStore::empty();
        for root in std::iter::once(authority.certificate_der()).chain(others) {
            roots.add(root.clone())?;
        }
        let provider = Arc::new(ring::default_provider());
        let algorithms = provider.signature_verification_algorithms;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        Ok(Self {
            verifier: verifier.allow_unauthenticated().build()?,
            issuers: Issuers::new(std::iter::once(authority.certificate_der()).chain(others)),
            algorithms,
        })
    }

    /// Authenticates the holder of a certificate chain at the time `now`. An empty chain is no certificate.
    fn authenticate(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> ClientAuth {
        let Some((certificate, intermediates)) = chain.split_first() else { return ClientAuth::NoOpinion };
        match self.verifier.verify_client_cert(certificate, intermediates, now) {
            Ok(_) => certificate_user(certificate),
            Err(_) if self.issuers.signed(certificate, now, self.algorithms.all) => {
                certificate_user(certificate)
            }
            Err(error) => {
                tracing::debug!(%error, "a client certificate is not valid");
                ClientAuth::Invalid
            }
        }
    }
}

/// Returns the seconds since 1970 at which a certificate is valid.
fn validity(certificate: &Certificate) -> RangeInclusive<u64> {
    let validity = &certificate.tbs_certificate.validity;
    let (from, until) = (validity.not_before.to_unix_duration(), validity.not_after.to_unix_duration());
    from.as_secs()..=until.as_secs()
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
        self.verifier.root_hint_subjects()
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
        possession::verify_tls12(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        possession::verify_tls13(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}
