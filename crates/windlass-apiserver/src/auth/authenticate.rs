//! From credentials to an [`Identity`]: client certificates and bearer tokens.

use std::collections::BTreeMap;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use sha2::{Digest, Sha256};
use x509_cert::{
    Certificate,
    der::{
        Decode,
        asn1::{Ia5StringRef, ObjectIdentifier, PrintableStringRef, Utf8StringRef},
    },
    name::Name,
};

use super::Identity;

/// The bearer tokens a server knows.
///
/// Tokens are kept as digests: a comparison's duration tells nothing about them, and no dump of memory shows one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens(BTreeMap<[u8; 32], Identity>);

impl Tokens {
    pub(crate) fn add(&mut self, token: &str, identity: Identity) {
        self.0.insert(digest(token), identity);
    }

    pub(crate) fn extend(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    pub(crate) fn find(&self, token: &str) -> Option<&Identity> {
        self.0.get(&digest(token))
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// What the headers and the connection say about who asks.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Authenticated {
    /// Somebody, or nobody in particular.
    As(Identity),
    /// Credentials that are not valid: to be refused, never taken for an anonymous user.
    Refused,
}

/// A client certificate counts before a bearer token; without either the request is anonymous.
pub(crate) fn authenticate(
    certificate: Option<&Identity>,
    headers: &HeaderMap,
    identity_of: impl Fn(&str) -> Option<Identity>,
) -> Authenticated {
    if let Some(identity) = certificate {
        return Authenticated::As(identity.clone());
    }
    let Some(header) = headers.get(AUTHORIZATION) else {
        return Authenticated::As(Identity::anonymous());
    };
    let token = header.to_str().ok().and_then(bearer);
    match token.and_then(identity_of) {
        Some(identity) => Authenticated::As(identity),
        None => Authenticated::Refused,
    }
}

fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim()).filter(|token| !token.is_empty())
}

/// The user that a client certificate names: its common name, and its organizations as groups.
///
/// `None` where the certificate cannot be read or has no common name.
pub(crate) fn certificate_identity(der: &[u8]) -> Option<Identity> {
    let subject = Certificate::from_der(der).ok()?.tbs_certificate.subject;
    let name = attributes(&subject, COMMON_NAME).next()?;
    Some(attributes(&subject, ORGANIZATION).fold(Identity::user(&name), Identity::with_group))
}

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");

/// The values of one attribute of a subject. Values that are not text are skipped.
fn attributes(subject: &Name, attribute: ObjectIdentifier) -> impl Iterator<Item = String> {
    let values =
        subject.0.iter().flat_map(|names| names.0.iter()).filter(move |value| value.oid == attribute);
    values.filter_map(|attribute| {
        let value = &attribute.value;
        let text = value.decode_as::<Utf8StringRef<'_>>().map(|text| text.as_str().to_owned());
        let text = text
            .or_else(|_| value.decode_as::<PrintableStringRef<'_>>().map(|text| text.as_str().to_owned()));
        text.or_else(|_| value.decode_as::<Ia5StringRef<'_>>().map(|text| text.as_str().to_owned())).ok()
    })
}

#[cfg(test)]
mod tests;
