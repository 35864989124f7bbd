//! Issuing certificates.

use std::{net::IpAddr, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, SanType,
};
use rustls_pki_types::{CertificateDer, pem::PemObject};
use x509_cert::{
    Certificate,
    der::{Decode, asn1::Utf8StringRef, oid::ObjectIdentifier},
};

use super::store::{CertificateError, timestamp};

/// The organization in the subject of every authority that this crate creates.
const ORGANIZATION: &str = "windlass-webhook";

/// How far the clocks of the API server and this process may differ.
const SKEW: Duration = Duration::from_secs(300);

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATION_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");
const SUBJECT_ALT_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");

/// A new certificate with a key, in PEM.
#[derive(Clone)]
pub(super) struct Issued {
    pub(super) certificate: String,
    pub(super) key: String,
}

/// The facts about a certificate that rotation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) common_name: String,
    pub(super) issuer: String,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
    /// True for an authority that this crate has created.
    pub(super) is_own_authority: bool,
    pub(super) names: Vec<String>,
}

/// Creates an authority.
pub(super) fn create_authority(now: Timestamp, life: Duration) -> Result<Issued, CertificateError> {
    let key = KeyPair::generate().map_err(failed)?;
    // The time and a part of the key tell apart the authorities of a rotation and of replicas that race.
    let raw = key.public_key_raw();
    let suffix = raw.iter().rev().take(6).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let mut params = params(&format!("windlass-webhook-ca {} {suffix:012x}", now.as_second()), now, life)?;
    params.distinguished_name.push(DnType::OrganizationName, ORGANIZATION);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Creates a self-signed certificate for a server. `names` are DNS names and IP addresses.
pub(super) fn create_self_signed(
    names: &[String],
    now: Timestamp,
    life: Duration,
) -> Result<Issued, CertificateError> {
    let key = KeyPair::generate().map_err(failed)?;
    let mut params = server_params(names, now, life)?;
    params.is_ca = IsCa::ExplicitNoCa;
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Issues a certificate for a server. `names` are DNS names and IP addresses.
pub(super) fn issue_server(
    authority: &Facts,
    authority_key: &str,
    names: &[String],
    now: Timestamp,
    life: Duration,
) -> Result<Issued, CertificateError> {
    let authority_key = KeyPair::from_pem(authority_key).map_err(failed)?;
    // Only the name and key of the issuer appear in the signed certificate.
    let mut issuer = CertificateParams::default();
    issuer.distinguished_name = subject(&authority.common_name);
    issuer.distinguished_name.push(DnType::OrganizationName, ORGANIZATION);
    let issuer = Issuer::new(issuer, authority_key);
    let key = KeyPair::generate().map_err(failed)?;
    // A certificate must not outlive its issuer.
    let left = authority.not_after.duration_since(now);
    let life = life.min(Duration::try_from(left).unwrap_or_default());
    let mut params = server_params(names, now, life)?;
    params.use_authority_key_identifier_extension = true;
    let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
    Ok(Issued { certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Returns the common parameters of server certificates.
fn server_params(
    names: &[String],
    now: Timestamp,
    life: Duration,
) -> Result<CertificateParams, CertificateError> {
    let common_name = names.first().map_or("webhook", |name| name.get(..64).unwrap_or(name));
    let mut params = params(common_name, now, life)?;
    for name in names {
        params.subject_alt_names.push(match name.parse::<IpAddr>() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(name.as_str().try_into().map_err(|_| {
                CertificateError(format!("{name:?} is not a name that a certificate can have"))
            })?),
        });
    }
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn params(common_name: &str, now: Timestamp, life: Duration) -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(common_name);
    let time = |at: Timestamp| {
        let date = at.to_zoned(jiff::tz::TimeZone::UTC);
        let date_only = rcgen::date_time_ymd(i32::from(date.year()), date.month() as u8, date.day() as u8);
        let midnight = date.start_of_day().map_or(at, |midnight| midnight.timestamp());
        date_only + Duration::try_from(at.duration_since(midnight)).unwrap_or_default()
    };
    let out_of_range = |_| CertificateError("the time is out of range".to_owned());
    params.not_before = time(now.checked_sub(SKEW).map_err(out_of_range)?);
    params.not_after = time(now.checked_add(life).map_err(out_of_range)?);
    Ok(params)
}

fn subject(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

fn failed(error: rcgen::Error) -> CertificateError {
    CertificateError(format!("cannot create a certificate: {error}"))
}

/// Parses every certificate of a PEM bundle. Certificates that do not decode are left out.
pub(super) fn read_bundle(pem: &[u8]) -> Vec<(CertificateDer<'static>, Facts)> {
    CertificateDer::pem_slice_iter(pem)
        .filter_map(|certificate| {
            let certificate = certificate.ok()?;
            let facts = facts(&certificate)?;
            Some((certificate, facts))
        })
        .collect()
}

fn facts(certificate: &CertificateDer<'_>) -> Option<Facts> {
    let certificate = Certificate::from_der(certificate).ok()?.tbs_certificate;
    let text = |name: &x509_cert::name::Name, oid: ObjectIdentifier| {
        let attributes = name.0.iter().flat_map(|set| set.0.iter());
        let mut values = attributes.filter(|attribute| attribute.oid == oid);
        values.next().and_then(|attribute| {
            attribute.value.decode_as::<Utf8StringRef<'_>>().ok().map(|t| t.to_string())
        })
    };
    let extensions = certificate.extensions.iter().flatten();
    let names = extensions.filter(|extension| extension.extn_id == SUBJECT_ALT_NAME).find_map(|extension| {
        x509_cert::ext::pkix::SubjectAltName::from_der(extension.extn_value.as_bytes()).ok()
    });
    Some(Facts {
        common_name: text(&certificate.subject, COMMON_NAME).unwrap_or_default(),
        issuer: text(&certificate.issuer, COMMON_NAME).unwrap_or_default(),
        not_before: timestamp(&certificate.validity.not_before),
        not_after: timestamp(&certificate.validity.not_after),
        is_own_authority: certificate.subject == certificate.issuer
            && text(&certificate.subject, ORGANIZATION_NAME).as_deref() == Some(ORGANIZATION),
        names: names.map(|names| names.0.iter().filter_map(shown_name).collect()).unwrap_or_default(),
    })
}

fn shown_name(name: &x509_cert::ext::pkix::name::GeneralName) -> Option<String> {
    use x509_cert::ext::pkix::name::GeneralName;
    match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        GeneralName::IpAddress(bytes) => match bytes.as_bytes() {
            v4 if v4.len() == 4 => Some(IpAddr::from(<[u8; 4]>::try_from(v4).ok()?).to_string()),
            v6 => Some(IpAddr::from(<[u8; 16]>::try_from(v6).ok()?).to_string()),
        },
        _ => None,
    }
}
