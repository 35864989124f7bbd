//! The PKCS #10 request of a certificate signing request.

use der::asn1::ObjectIdentifier;
use der::{Decode, Encode, Reader, SliceReader, Tag};
use x509_cert::ext::Extension;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::request::CertReq;

const LABEL: &str = "CERTIFICATE REQUEST";
const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");
const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
/// The attribute of a request that contains the extensions of the certificate.
const EXTENSION_REQUEST: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.14");
const ALTERNATIVE_NAMES: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.17");

/// A request that was parsed.
pub(super) struct Request {
    pub(super) parsed: CertReq,
    /// The alternative names that a certificate takes over, in the order of a certificate: DNS names, mail addresses, IP addresses, URIs.
    pub(super) names: Vec<GeneralName>,
}

/// A request could not be parsed.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error("PEM block type must be {LABEL}")]
    Pem,
    #[error("the request is malformed: {0}")]
    Der(#[from] der::Error),
}

impl Request {
    /// Parses the first PEM block.
    pub(super) fn parse(text: &[u8]) -> Result<Self, RequestError> {
        let block = pem::parse(text).ok().filter(|block| block.tag() == LABEL).ok_or(RequestError::Pem)?;
        let parsed = CertReq::from_der(block.contents())?;
        let mut names = alternative_names(&parsed)?;
        names.retain(|name| rank(name).is_some());
        names.sort_by_key(rank);
        Ok(Self { parsed, names })
    }

    /// Returns the organizations of the subject: the groups of the user.
    pub(super) fn organizations(&self) -> Vec<String> {
        self.of_subject(ORGANIZATION)
    }

    /// Returns the common name of the subject, that is, the name of the user. The last of several common
    /// names counts, as in Go.
    pub(super) fn common_name(&self) -> String {
        self.of_subject(COMMON_NAME).pop().unwrap_or_default()
    }

    fn of_subject(&self, wanted: ObjectIdentifier) -> Vec<String> {
        let parts = self.parsed.info.subject.0.iter().flat_map(|part| part.0.iter());
        let values = parts.filter(|part| part.oid == wanted).map(|part| &part.value);
        values.filter_map(|value| String::from_utf8(value.value().to_vec()).ok()).collect()
    }

    pub(super) fn has_dns_names(&self) -> bool {
        self.names.iter().any(|name| matches!(name, GeneralName::DnsName(_)))
    }

    pub(super) fn has_mail_addresses(&self) -> bool {
        self.names.iter().any(|name| matches!(name, GeneralName::Rfc822Name(_)))
    }

    pub(super) fn has_ip_addresses(&self) -> bool {
        self.names.iter().any(|name| matches!(name, GeneralName::IpAddress(_)))
    }

    pub(super) fn has_uris(&self) -> bool {
        self.names.iter().any(|name| matches!(name, GeneralName::UniformResourceIdentifier(_)))
    }
}

/// Returns the position of a kind of name in a certificate; `None` for kinds that a certificate leaves out.
fn rank(name: &GeneralName) -> Option<u8> {
    match name {
        GeneralName::DnsName(_) => Some(0),
        GeneralName::Rfc822Name(_) => Some(1),
        GeneralName::IpAddress(_) => Some(2),
        GeneralName::UniformResourceIdentifier(_) => Some(3),
        _ => None,
    }
}

fn alternative_names(request: &CertReq) -> Result<Vec<GeneralName>, der::Error> {
    let attributes = request.info.attributes.iter().filter(|attribute| attribute.oid == EXTENSION_REQUEST);
    let mut names = Vec::new();
    for value in attributes.flat_map(|attribute| attribute.values.iter()) {
        let extensions: Vec<Extension> = value.decode_as()?;
        for extension in extensions.iter().filter(|extension| extension.extn_id == ALTERNATIVE_NAMES) {
            names.extend(names_of(extension.extn_value.as_bytes())?);
        }
    }
    Ok(names)
}

/// Reads names one by one: a name of an unknown kind does not hide the other names.
fn names_of(sequence: &[u8]) -> Result<Vec<GeneralName>, der::Error> {
    let whole = der::asn1::AnyRef::from_der(sequence)?;
    if whole.to_der()?.first() != Some(&Tag::Sequence.octet()) {
        return Err(der::Error::from(der::ErrorKind::TagUnexpected {
            expected: Some(Tag::Sequence),
            actual: Tag::Null,
        }));
    }
    let mut reader = SliceReader::new(whole.value())?;
    let mut names = Vec::new();
    while !reader.is_finished() {
        let part = reader.tlv_bytes()?;
        names.extend(GeneralName::from_der(part).ok());
    }
    Ok(names)
}
