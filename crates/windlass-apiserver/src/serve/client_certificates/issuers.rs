//! Client certificates that webpki refuses for their form and kube-apiserver accepts.

use der::asn1::{AnyRef, ObjectIdentifier};
use der::{Decode, Encode};
use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm, UnixTime};
use x509_cert::Certificate;
use x509_cert::ext::pkix::{ExtendedKeyUsage, NameConstraints};
use x509_cert::spki::AlgorithmIdentifierOwned;

use super::validity;

const ANY_PURPOSE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37.0");
const CLIENT_AUTHENTICATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");
/// Key usage, subject alternative names, basic constraints and extended key usage.
const KNOWN_EXTENSIONS: [ObjectIdentifier; 4] = [
    ObjectIdentifier::new_unwrap("2.5.29.15"),
    ObjectIdentifier::new_unwrap("2.5.29.17"),
    ObjectIdentifier::new_unwrap("2.5.29.19"),
    ObjectIdentifier::new_unwrap("2.5.29.37"),
];

/// The authorities with a signature check that ignores the form of client certificates.
///
/// Go's verifier, unlike webpki, accepts a client certificate of version 1 (`openssl x509 -req` without
/// extensions), the certificate of an authority (`openssl req -x509 -CA`), and a certificate for any purpose.
pub(super) struct Issuers(Vec<Certificate>);

impl Issuers {
    /// Keeps the authorities that may sign any name.
    pub(super) fn new<'a>(authorities: impl Iterator<Item = &'a CertificateDer<'a>>) -> Self {
        let parsed = authorities.filter_map(|der| Certificate::from_der(der).ok());
        let of_any_name =
            |issuer: &Certificate| matches!(issuer.tbs_certificate.get::<NameConstraints>(), Ok(None));
        Self(parsed.filter(of_any_name).collect())
    }

    /// Returns whether an authority signed the certificate, without an intermediate, for a client and for the time `now`.
    pub(super) fn signed(
        &self,
        der: &CertificateDer<'_>,
        now: UnixTime,
        algorithms: &[&dyn SignatureVerificationAlgorithm],
    ) -> bool {
        let Ok(certificate) = Certificate::from_der(der) else { return false };
        let issuer = &certificate.tbs_certificate.issuer;
        let mut issuers = self.0.iter().filter(|authority| authority.tbs_certificate.subject == *issuer);
        is_valid_at(&certificate, now)
            && is_for_clients(&certificate)
            && issuers.any(|issuer| {
                is_valid_at(issuer, now) && has_signed(issuer, &certificate, algorithms).unwrap_or(false)
            })
    }
}

fn is_valid_at(certificate: &Certificate, now: UnixTime) -> bool {
    validity(certificate).contains(&now.as_secs())
}

/// Returns whether no extension forbids the use by a client. A critical extension that is not known does.
fn is_for_clients(certificate: &Certificate) -> bool {
    let extensions = certificate.tbs_certificate.extensions.iter().flatten();
    let mut critical = extensions.filter(|extension| extension.critical);
    critical.all(|extension| KNOWN_EXTENSIONS.contains(&extension.extn_id))
        && match certificate.tbs_certificate.get::<ExtendedKeyUsage>() {
            Ok(None) => true,
            Ok(Some((_, usages))) => {
                usages.0.iter().any(|usage| [ANY_PURPOSE, CLIENT_AUTHENTICATION].contains(usage))
            }
            Err(_) => false,
        }
}

/// Verifies the signature of a certificate. `None` if a part of either certificate cannot be encoded.
fn has_signed(
    issuer: &Certificate,
    certificate: &Certificate,
    algorithms: &[&dyn SignatureVerificationAlgorithm],
) -> Option<bool> {
    let key = &issuer.tbs_certificate.subject_public_key_info;
    let (key_id, signature_id) = (contents(&key.algorithm)?, contents(&certificate.signature_algorithm)?);
    let key = key.subject_public_key.as_bytes()?;
    let message = certificate.tbs_certificate.to_der().ok()?;
    let signature = certificate.signature.as_bytes()?;
    let mut fitting = algorithms.iter().filter(|algorithm| {
        algorithm.public_key_alg_id().as_ref() == key_id
            && algorithm.signature_alg_id().as_ref() == signature_id
    });
    Some(fitting.any(|algorithm| algorithm.verify_signature(key, &message, signature).is_ok()))
}

/// Returns an algorithm identifier in DER, without tag and length.
pub(super) fn contents(algorithm: &AlgorithmIdentifierOwned) -> Option<Vec<u8>> {
    let der = algorithm.to_der().ok()?;
    Some(AnyRef::from_der(&der).ok()?.value().to_vec())
}
