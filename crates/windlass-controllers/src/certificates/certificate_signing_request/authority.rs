//! The authority that signs the certificates of a cluster.

use std::time::Duration;

use der::asn1::{BitString, GeneralizedTime, ObjectIdentifier, OctetString, UtcTime};
use der::flagset::FlagSet;
use der::{Decode, Encode};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use rcgen::{KeyPair, SigningKey};
use x509_cert::Certificate;
use x509_cert::certificate::{TbsCertificate, Version};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectKeyIdentifier,
};
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::AlgorithmIdentifierOwned;
use x509_cert::time::{Time, Validity};

use super::request::Request;

const LABEL: &str = "CERTIFICATE";
const ECDSA_WITH_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
const ALTERNATIVE_NAMES: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");
const BASIC_CONSTRAINTS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.19");
const KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.15");
const EXTENDED_KEY_USAGE: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.37");
const AUTHORITY_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.35");

/// The time by which the validity of a certificate begins before the signing, because clocks differ.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);
/// Certificates with a shorter life end exactly after that life; longer certificates end earlier by
/// [`BACKDATE`].
const SHORT: SignedDuration = SignedDuration::from_hours(8);
/// The last year that certificates write with two digits.
const LAST_UTC_YEAR: u16 = 2049;

/// The certificate and the key with which the controllers [sign
/// certificates](crate::Controllers::sign_certificates), like `--cluster-signing-cert-file` and
/// `--cluster-signing-key-file` of kube-controller-manager.
pub struct SigningAuthority {
    certificate: Certificate,
    key: KeyPair,
}

/// A [`SigningAuthority`] cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SigningAuthorityError {
    /// The certificate is not PEM, or malformed.
    #[error("the certificate of the signing authority is malformed: {0}")]
    Certificate(String),
    /// The private key is not PEM, or malformed.
    #[error("the private key of the signing authority cannot be read: {0}")]
    Key(rcgen::Error),
    /// The key is not an ECDSA key on the curve P-256.
    #[error("the private key of the signing authority must be an ECDSA key on the curve P-256")]
    Algorithm,
}

/// A certificate could not be signed.
#[derive(Debug, thiserror::Error)]
pub(super) enum SigningError {
    #[error("the signer has expired: NotAfter={0}")]
    Expired(Timestamp),
    #[error("unrecognized usage values: [{0:?}]")]
    Usage(String),
    #[error("the certificate cannot be encoded: {0}")]
    Encode(#[from] der::Error),
    #[error("the certificate cannot be signed: {0}")]
    Sign(#[from] rcgen::Error),
}

impl SigningAuthority {
    /// Reads the certificate and the private key (PKCS #8, ECDSA P-256) of an authority, both PEM.
    ///
    /// # Errors
    /// The certificate or the key is malformed, or the key has a wrong type.
    pub fn from_pem(certificate: &str, key: &str) -> Result<Self, SigningAuthorityError> {
        let malformed = |error: &dyn ToString| SigningAuthorityError::Certificate(error.to_string());
        let block = pem::parse(certificate).map_err(|error| malformed(&error))?;
        let certificate = Certificate::from_der(block.contents()).map_err(|error| malformed(&error))?;
        let key = KeyPair::from_pem(key).map_err(SigningAuthorityError::Key)?;
        if !key.is_compatible(&rcgen::PKCS_ECDSA_P256_SHA256) {
            return Err(SigningAuthorityError::Algorithm);
        }
        Ok(Self { certificate, key })
    }

    /// Signs a certificate for a request, PEM. `life` counts from `now`; `serial` is random.
    pub(super) fn sign(
        &self,
        request: &Request,
        usages: &[String],
        life: SignedDuration,
        serial: u128,
        now: Timestamp,
    ) -> Result<String, SigningError> {
        let signed = self.unsigned(request, usages, self.validity(life, now)?, serial)?;
        let signature = self.key.sign(&signed.to_der()?)?;
        let certificate = Certificate {
            signature_algorithm: signed.signature.clone(),
            tbs_certificate: signed,
            signature: BitString::from_bytes(&signature)?,
        };
        let block = pem::Pem::new(LABEL, certificate.to_der()?);
        Ok(pem::encode_config(&block, pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF)))
    }

    fn unsigned(
        &self,
        request: &Request,
        usages: &[String],
        validity: Validity,
        serial: u128,
    ) -> Result<TbsCertificate, SigningError> {
        Ok(TbsCertificate {
            version: Version::V3,
            serial_number: SerialNumber::new(&serial.to_be_bytes())?,
            signature: AlgorithmIdentifierOwned { oid: ECDSA_WITH_SHA256, parameters: None },
            issuer: self.certificate.tbs_certificate.subject.clone(),
            validity,
            subject: request.parsed.info.subject.clone(),
            subject_public_key_info: request.parsed.info.public_key.clone(),
            issuer_unique_id: None,
            subject_unique_id: None,
            extensions: Some(self.extensions(request, usages)?),
        })
    }

    /// Returns the extensions in the order of Go's certificates.
    fn extensions(&self, request: &Request, usages: &[String]) -> Result<Vec<Extension>, SigningError> {
        let (plain, extended) = split_usages(usages)?;
        let mut extensions = Vec::new();
        if !plain.is_empty() {
            extensions.push(extension(KEY_USAGE, true, &KeyUsage(plain))?);
        }
        if !extended.is_empty() {
            extensions.push(extension(EXTENDED_KEY_USAGE, false, &ExtendedKeyUsage(extended))?);
        }
        let leaf = BasicConstraints { ca: false, path_len_constraint: None };
        extensions.push(extension(BASIC_CONSTRAINTS, true, &leaf)?);
        if let Ok(Some((_, SubjectKeyIdentifier(id)))) = self.certificate.tbs_certificate.get() {
            let of_authority =
                AuthorityKeyIdentifier { key_identifier: Some(id), ..AuthorityKeyIdentifier::default() };
            extensions.push(extension(AUTHORITY_KEY, false, &of_authority)?);
        }
        if !request.names.is_empty() {
            let no_subject = request.parsed.info.subject.0.is_empty();
            extensions.push(extension(ALTERNATIVE_NAMES, no_subject, &request.names)?);
        }
        Ok(extensions)
    }

    fn validity(&self, life: SignedDuration, now: Timestamp) -> Result<Validity, SigningError> {
        let end_of_authority = timestamp(&self.certificate.tbs_certificate.validity.not_after);
        if now >= end_of_authority {
            return Err(SigningError::Expired(end_of_authority));
        }
        let life = if life < SHORT { life } else { life - BACKDATE };
        let not_after = now.saturating_add(life).unwrap_or(Timestamp::MAX).min(end_of_authority);
        let not_before = now.saturating_sub(BACKDATE).unwrap_or(Timestamp::MIN);
        Ok(Validity { not_before: time(not_before)?, not_after: time(not_after)? })
    }
}

impl std::fmt::Debug for SigningAuthority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SigningAuthority").finish_non_exhaustive()
    }
}

/// Returns the end of a certificate (PEM), or `None` for a malformed certificate.
pub(super) fn end_of(certificate: &[u8]) -> Option<Timestamp> {
    let block = pem::parse(certificate).ok()?;
    let certificate = Certificate::from_der(block.contents()).ok()?;
    Some(timestamp(&certificate.tbs_certificate.validity.not_after))
}

fn timestamp(time: &Time) -> Timestamp {
    let seconds = i64::try_from(time.to_unix_duration().as_secs());
    seconds.ok().and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or(Timestamp::MAX)
}

fn time(at: Timestamp) -> Result<Time, der::Error> {
    let seconds = Duration::from_secs(at.as_second().max(0).unsigned_abs());
    let general = GeneralizedTime::from_unix_duration(seconds)?;
    let date = general.to_date_time();
    Ok(if date.year() <= LAST_UTC_YEAR {
        Time::UtcTime(UtcTime::from_date_time(date)?)
    } else {
        Time::GeneralTime(general)
    })
}

fn extension(id: ObjectIdentifier, critical: bool, value: &impl Encode) -> Result<Extension, der::Error> {
    Ok(Extension { extn_id: id, critical, extn_value: OctetString::new(value.to_der()?)? })
}

type Usages = (FlagSet<KeyUsages>, Vec<ObjectIdentifier>);

/// Splits the usages of a request into the two extensions of a certificate.
fn split_usages(usages: &[String]) -> Result<Usages, SigningError> {
    let mut plain = FlagSet::default();
    let mut extended = Vec::new();
    for usage in usages {
        if let Some(flag) = plain_usage(usage) {
            plain |= flag;
        } else if let Some(place) = EXTENDED.iter().position(|(name, _)| name == usage) {
            extended.push(place);
        } else {
            return Err(SigningError::Usage(usage.clone()));
        }
    }
    extended.sort_unstable();
    let mut ids: Vec<ObjectIdentifier> = extended.into_iter().map(|place| EXTENDED[place].1).collect();
    ids.dedup();
    Ok((plain, ids))
}

fn plain_usage(usage: &str) -> Option<KeyUsages> {
    Some(match usage {
        "signing" | "digital signature" => KeyUsages::DigitalSignature,
        "content commitment" => KeyUsages::NonRepudiation,
        "key encipherment" => KeyUsages::KeyEncipherment,
        "data encipherment" => KeyUsages::DataEncipherment,
        "key agreement" => KeyUsages::KeyAgreement,
        "cert sign" => KeyUsages::KeyCertSign,
        "crl sign" => KeyUsages::CRLSign,
        "encipher only" => KeyUsages::EncipherOnly,
        "decipher only" => KeyUsages::DecipherOnly,
        _ => return None,
    })
}

/// The extended usages, in the order of a certificate.
const EXTENDED: [(&str, ObjectIdentifier); 13] = [
    ("any", ObjectIdentifier::new_unwrap("2.5.29.37.0")),
    ("server auth", ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1")),
    ("client auth", ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2")),
    ("code signing", ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.3")),
    ("email protection", ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.4")),
    ("s/mime", ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.4")),
    ("ipsec end system", ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.5")),
    ("ipsec tunnel", ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.6")),
    ("ipsec user", ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.7")),
    ("timestamping", ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.8")),
    ("ocsp signing", ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.9")),
    ("microsoft sgc", ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.10.3.3")),
    ("netscape sgc", ObjectIdentifier::new_unwrap("2.16.840.1.113730.4.1")),
];
