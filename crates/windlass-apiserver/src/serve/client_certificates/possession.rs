//! The proof that a client has the key of the client's certificate.

use der::{Decode, Encode};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::{CertificateError, DigitallySignedStruct, Error};
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer};
use x509_cert::Certificate;
use x509_cert::spki::SubjectPublicKeyInfoOwned;

use super::issuers::contents;

/// Verifies the signature of a TLS 1.3 handshake by the key alone: the form of the certificate is checked later.
pub(super) fn verify_tls13(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let key = public_key(certificate)?.to_der().map_err(|_| CertificateError::BadEncoding)?;
    verify_tls13_signature_with_raw_key(message, &SubjectPublicKeyInfoDer::from(key), signed, algorithms)
}

/// Verifies the signature of a TLS 1.2 handshake by the key alone.
pub(super) fn verify_tls12(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signed: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    let key = public_key(certificate)?;
    let key_id = contents(&key.algorithm).ok_or(CertificateError::BadEncoding)?;
    let key = key.subject_public_key.as_bytes().ok_or(CertificateError::BadEncoding)?;
    let of_scheme = algorithms.mapping.iter().filter(|(scheme, _)| *scheme == signed.scheme);
    let mut fitting = of_scheme
        .flat_map(|(_, algorithms)| algorithms.iter())
        .filter(|algorithm| algorithm.public_key_alg_id().as_ref() == key_id);
    if fitting.any(|algorithm| algorithm.verify_signature(key, message, signed.signature()).is_ok()) {
        return Ok(HandshakeSignatureValid::assertion());
    }
    Err(CertificateError::BadSignature.into())
}

fn public_key(certificate: &CertificateDer<'_>) -> Result<SubjectPublicKeyInfoOwned, CertificateError> {
    let certificate = Certificate::from_der(certificate).map_err(|_| CertificateError::BadEncoding)?;
    Ok(certificate.tbs_certificate.subject_public_key_info)
}
