//! The certificates and the requests for them that clients send as PEM.

use der::{Decode, Encode};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use x509_cert::Certificate;
use x509_cert::request::CertReq;
use x509_cert::spki::ObjectIdentifier;

use crate::certificates::subject::organizations;

const REQUEST: &str = "CERTIFICATE REQUEST";
const CERTIFICATE: &str = "CERTIFICATE";

const SHA256_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
const SHA384_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12");
const SHA512_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13");
const ECDSA_WITH_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
const ECDSA_WITH_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");

/// A certificate request that was parsed.
pub(super) struct Request(CertReq);

impl Request {
    /// Parses the first PEM block.
    ///
    /// # Errors
    /// Why it is not a certificate request.
    pub(super) fn parse(text: &[u8]) -> Result<Self, String> {
        let block = pem::parse(text).ok().filter(|block| block.tag() == REQUEST);
        let block = block.ok_or_else(|| format!("PEM block type must be {REQUEST}"))?;
        CertReq::from_der(block.contents()).map(Self).map_err(|error| format!("asn1: syntax error: {error}"))
    }

    /// Checks that the requester has the key. Signatures by rare algorithms are not checked.
    ///
    /// # Errors
    /// The signature is not valid.
    pub(super) fn check_signature(&self) -> Result<(), String> {
        let Some(algorithm) = self.algorithm() else { return Ok(()) };
        let signed = self.0.info.to_der().map_err(|error| error.to_string())?;
        let key = self.0.info.public_key.subject_public_key.raw_bytes();
        let is_valid = UnparsedPublicKey::new(algorithm, key).verify(&signed, self.0.signature.raw_bytes());
        is_valid.map_err(|_| "x509: signature verification failed".to_owned())
    }

    fn algorithm(&self) -> Option<&'static dyn VerificationAlgorithm> {
        let parameters = self.0.info.public_key.algorithm.parameters.as_ref();
        let curve = parameters.and_then(|curve| curve.decode_as::<ObjectIdentifier>().ok());
        Some(match (self.0.algorithm.oid, curve) {
            (SHA256_WITH_RSA, _) => &signature::RSA_PKCS1_2048_8192_SHA256,
            (SHA384_WITH_RSA, _) => &signature::RSA_PKCS1_2048_8192_SHA384,
            (SHA512_WITH_RSA, _) => &signature::RSA_PKCS1_2048_8192_SHA512,
            (ECDSA_WITH_SHA256, Some(P256)) => &signature::ECDSA_P256_SHA256_ASN1,
            (ECDSA_WITH_SHA384, Some(P256)) => &signature::ECDSA_P256_SHA384_ASN1,
            (ECDSA_WITH_SHA256, Some(P384)) => &signature::ECDSA_P384_SHA256_ASN1,
            (ECDSA_WITH_SHA384, Some(P384)) => &signature::ECDSA_P384_SHA384_ASN1,
            (ED25519, _) => &signature::ED25519,
            _ => return None,
        })
    }

    /// Returns the organizations of the subject: the groups of the user.
    pub(super) fn organizations(&self) -> Vec<String> {
        organizations(&self.0.info.subject).collect()
    }
}

/// Checks that a text has one or more certificates. An empty text is accepted: the certificate is not issued
/// yet.
///
/// # Errors
/// Why it is not.
pub(super) fn check_certificates(text: &[u8]) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let blocks = pem::parse_many(text).unwrap_or_default();
    for block in &blocks {
        if block.tag() != CERTIFICATE {
            let found = windlass_schema::go_quote(block.tag());
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found {found}"));
        }
        if block.headers().iter().next().is_some() {
            return Err("no PEM block headers are permitted".to_owned());
        }
        Certificate::from_der(block.contents()).map_err(|_| "x509: malformed certificate".to_owned())?;
    }
    if blocks.is_empty() {
        return Err("must contain at least one CERTIFICATE PEM block".to_owned());
    }
    Ok(())
}
