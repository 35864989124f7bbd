//! The attributes of the subject of a certificate.

use der::asn1::{Ia5StringRef, PrintableStringRef, Utf8StringRef};
use x509_cert::name::Name;
use x509_cert::spki::ObjectIdentifier;

const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");

/// Returns the organizations of a subject: the groups of the user.
pub fn organizations(subject: &Name) -> impl Iterator<Item = String> {
    attributes(subject, ORGANIZATION)
}

/// Returns the values of an attribute of a subject. Values that are not text are skipped.
pub fn attributes(subject: &Name, attribute: ObjectIdentifier) -> impl Iterator<Item = String> {
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
