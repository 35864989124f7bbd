//! The public key of a request, and the proof that the requester has the private key.

use der::asn1::UintRef;
use der::{Decode, Encode, Reader, SliceReader};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use x509_cert::request::CertReq;
use x509_cert::spki::{ObjectIdentifier, SubjectPublicKeyInfoOwned};

const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const ELLIPTIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const P224: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.33");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");

const ECDSA_WITH_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
const ECDSA_WITH_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3");
const SHA256_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
const SHA384_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.12");
const SHA512_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.13");

/// The type of a public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyType {
    Ed25519,
    /// An elliptic key, with the name of the curve.
    Elliptic(&'static str),
    /// An RSA key, with the length of the modulus in bits.
    Rsa(usize),
    Other,
}

/// A public key.
pub(super) struct PublicKey(SubjectPublicKeyInfoOwned);

impl PublicKey {
    /// Parses a key in the form of PKIX. Returns `None` for another text, and for an unknown curve.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        Self::new(SubjectPublicKeyInfoOwned::from_der(bytes).ok()?)
    }

    /// Returns the key of a certificate or of a request for a certificate.
    pub(super) fn new(info: SubjectPublicKeyInfoOwned) -> Option<Self> {
        let key = Self(info);
        key.key_type().map(|_| key)
    }

    fn key_type(&self) -> Option<KeyType> {
        Some(match self.0.algorithm.oid {
            ED25519 => KeyType::Ed25519,
            RSA => KeyType::Rsa(modulus_bits(self.0.subject_public_key.raw_bytes())?),
            ELLIPTIC => {
                let curve = self.0.algorithm.parameters.as_ref()?.decode_as::<ObjectIdentifier>().ok()?;
                let names = [(P224, "P-224"), (P256, "P-256"), (P384, "P-384"), (P521, "P-521")];
                KeyType::Elliptic(names.iter().find(|(known, _)| *known == curve)?.1)
            }
            _ => KeyType::Other,
        })
    }

    /// Returns the value and the reason if pods may not have keys of this type. `None` as the value is not shown.
    pub(super) fn problem(&self, curves: &str) -> Option<(Option<String>, String)> {
        match self.key_type()? {
            KeyType::Ed25519 | KeyType::Elliptic("P-256" | "P-384" | "P-521") | KeyType::Rsa(3072 | 4096) => {
                None
            }
            KeyType::Elliptic(curve) => Some((
                Some(format!("curve {curve}")),
                format!("elliptic public keys must use curve {curves}"),
            )),
            KeyType::Rsa(bits) => Some((
                Some(format!("{bits}-bit modulus")),
                "RSA keys must have modulus size 3072 or 4096".to_owned(),
            )),
            KeyType::Other => Some((
                None,
                "unknown public key type; supported types are Ed25519, ECDSA, and RSA".to_owned(),
            )),
        }
    }

    /// Returns whether `proof` is a signature of `message` by the private key. Signatures by RSA and by the curve P-521 are
    /// not checked.
    pub(super) fn verifies(&self, message: &[u8], proof: &[u8]) -> bool {
        let algorithm: &dyn VerificationAlgorithm = match self.key_type() {
            Some(KeyType::Ed25519) => &signature::ED25519,
            Some(KeyType::Elliptic("P-256")) => &signature::ECDSA_P256_SHA256_ASN1,
            Some(KeyType::Elliptic("P-384")) => &signature::ECDSA_P384_SHA256_ASN1,
            _ => return true,
        };
        self.unparsed(algorithm).verify(message, proof).is_ok()
    }

    fn unparsed<'a>(&'a self, algorithm: &'static dyn VerificationAlgorithm) -> UnparsedPublicKey<&'a [u8]> {
        UnparsedPublicKey::new(algorithm, self.0.subject_public_key.raw_bytes())
    }
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        let parameters = |key: &Self| key.0.algorithm.parameters.as_ref().and_then(|any| any.to_der().ok());
        // RSA keys may have the parameter null, or none.
        let same_parameters = self.0.algorithm.oid == RSA || parameters(self) == parameters(other);
        self.0.algorithm.oid == other.0.algorithm.oid
            && same_parameters
            && self.0.subject_public_key == other.0.subject_public_key
    }
}

/// Returns the length of the modulus of an RSA key.
fn modulus_bits(key: &[u8]) -> Option<usize> {
    let mut reader = SliceReader::new(key).ok()?;
    let length = reader.sequence(|inner| {
        let modulus = UintRef::decode(inner)?;
        UintRef::decode(inner)?;
        Ok(modulus.as_bytes().len())
    });
    Some(length.ok()? * 8)
}

/// A request for a certificate, in the form of PKCS #10.
pub(super) struct StubRequest {
    request: CertReq,
    pub(super) key: PublicKey,
}

impl StubRequest {
    /// Parses a request in DER.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let request = CertReq::from_der(bytes).ok()?;
        let key = PublicKey::new(request.info.public_key.clone())?;
        Some(Self { request, key })
    }

    /// Returns whether the request is signed by its key. Signatures by rare algorithms are not checked.
    pub(super) fn is_signed(&self) -> bool {
        let algorithm: &dyn VerificationAlgorithm = match (self.request.algorithm.oid, self.key.key_type()) {
            (ED25519, _) => &signature::ED25519,
            (SHA256_WITH_RSA, _) => &signature::RSA_PKCS1_2048_8192_SHA256,
            (SHA384_WITH_RSA, _) => &signature::RSA_PKCS1_2048_8192_SHA384,
            (SHA512_WITH_RSA, _) => &signature::RSA_PKCS1_2048_8192_SHA512,
            (ECDSA_WITH_SHA256, Some(KeyType::Elliptic("P-256"))) => &signature::ECDSA_P256_SHA256_ASN1,
            (ECDSA_WITH_SHA384, Some(KeyType::Elliptic("P-256"))) => &signature::ECDSA_P256_SHA384_ASN1,
            (ECDSA_WITH_SHA256, Some(KeyType::Elliptic("P-384"))) => &signature::ECDSA_P384_SHA256_ASN1,
            (ECDSA_WITH_SHA384, Some(KeyType::Elliptic("P-384"))) => &signature::ECDSA_P384_SHA384_ASN1,
            _ => return true,
        };
        let Ok(signed) = self.request.info.to_der() else { return false };
        self.key.unparsed(algorithm).verify(&signed, self.request.signature.raw_bytes()).is_ok()
    }
}
