//! The check of a webhook's certificate.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::Endpoint;
use super::roots;

/// The certificate of this server as a client, and the private key.
pub(crate) struct ClientIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl ClientIdentity {
    /// Reads a certificate and a private key, both PEM.
    ///
    /// # Errors
    /// The texts have no certificate or no key.
    pub(crate) fn from_pem(certificate: &str, key: &str) -> Result<Self, String> {
        let chain = CertificateDer::pem_slice_iter(certificate.as_bytes()).collect::<Result<_, _>>();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| error.to_string())?;
        Ok(Self { chain: chain.map_err(|error| error.to_string())?, key })
    }
}

/// Makes the TLS settings for an endpoint. The certificate of `identity` is sent if the endpoint asks for a certificate.
///
/// # Errors
///
/// If the `caBundle` has no certificate.
pub(super) async fn client_config(
    endpoint: &Endpoint,
    identity: Option<&ClientIdentity>,
) -> Result<ClientConfig, String> {
    let trusted: Vec<CertificateDer<'static>> = if endpoint.ca_bundle.is_empty() {
        roots::system().await.to_vec()
    } else {
        CertificateDer::pem_slice_iter(&endpoint.ca_bundle).filter_map(Result::ok).collect()
    };
    let mut store = RootCertStore::empty();
    store.add_parsable_certificates(trusted.iter().cloned());
    let provider = Arc::new(ring::default_provider());
    let verifier = if store.is_empty() {
        None
    } else {
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(store), Arc::clone(&provider));
        Some(builder.build().map_err(|error| error.to_string())?)
    };
    let signatures = provider.signature_verification_algorithms;
    let check: Arc<dyn ServerCertVerifier> = if endpoint.is_unverified {
        Arc::new(Unverified(signatures))
    } else {
        Arc::new(Trust { verifier, trusted, signatures })
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(check);
    let mut config = match identity {
        Some(identity) => builder
            .with_client_auth_cert(identity.chain.clone(), identity.key.clone_key())
            .map_err(|error| error.to_string())?,
        None => builder.with_no_client_auth(),
    };
    let http1 = b"http/1.1".to_vec();
    config.alpn_protocols = if endpoint.may_use_http2() { vec![b"h2".to_vec(), http1] } else { vec![http1] };
    Ok(config)
}

/// Makes TLS settings that do not check the server's certificate.
///
/// # Errors
///
/// If there are no such settings.
pub(super) fn unverified_config() -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier = Arc::new(Unverified(provider.signature_verification_algorithms));
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Accepts every certificate. The signatures of the handshake are checked.
#[derive(Debug)]
struct Unverified(rustls::crypto::WebPkiSupportedAlgorithms);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

/// Checks certificates like Go: a directly trusted certificate is valid, even the certificate of an
/// authority.
#[derive(Debug)]
struct Trust {
    /// `None` without trusted certificates.
    verifier: Option<Arc<WebPkiServerVerifier>>,
    trusted: Vec<CertificateDer<'static>>,
    signatures: rustls::crypto::WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(verifier) = &self.verifier else { return Err(CertificateError::UnknownIssuer.into()) };
        match verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The certificate of a webhook is often the `caBundle`, although another authority signed the
            // certificate.
            Err(Error::InvalidCertificate(
                CertificateError::Other(OtherError(_)) | CertificateError::UnknownIssuer,
            )) if self.trusted.contains(end_entity) => {
                rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                check_time(end_entity, now)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.signatures)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.signatures)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.supported_schemes()
    }
}

fn check_time(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let parsed = Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    let validity = &parsed.tbs_certificate.validity;
    let seconds = now.as_secs();
    if seconds < validity.not_before.to_unix_duration().as_secs() {
        return Err(CertificateError::NotValidYet.into());
    }
    if seconds > validity.not_after.to_unix_duration().as_secs() {
        return Err(CertificateError::Expired.into());
    }
    Ok(())
}

/// Explains why TLS failed, in Go's words.
pub(super) fn explain(error: &std::io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    let why = match tls {
        Some(Error::InvalidCertificate(why)) => why,
        Some(other) => return format!("tls: {other}"),
        None if error.kind() == std::io::ErrorKind::UnexpectedEof => return "EOF".to_owned(),
        None => return error.to_string(),
    };
    let words = match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let names: Vec<&str> = presented.iter().map(|name| bare(name)).collect();
            let wanted = expected.to_str();
            match names.len() {
                0 => format!("certificate is not valid for any names, but wanted to match {wanted}"),
                _ => format!("certificate is valid for {}, not {wanted}", names.join(", ")),
            }
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {words}")
}

/// Returns the name in `DnsName("a.example")`, rustls' form of a name.
fn bare(name: &str) -> &str {
    name.split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'))
        .map_or(name, |inner| inner.trim_matches('"'))
}
