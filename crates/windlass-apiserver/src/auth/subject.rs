//! The subject of a client certificate.

use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

/// The object identifiers 2.5.4.3 and 2.5.4.10, as DER.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

// DER tags.
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// The parts of a certificate's subject that name a user.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Subject {
    pub(super) common_names: Vec<String>,
    pub(super) organizations: Vec<String>,
}

impl Subject {
    /// Reads the subject of a DER-encoded certificate. `None` if the certificate, or its subject, is malformed.
    pub(super) fn of_certificate(der: &[u8]) -> Option<Self> {
        let der = CertificateDer::from(der);
        let certificate = EndEntityCert::try_from(&der).ok()?;
        Self::parse(certificate.subject())
    }

    /// Parses the contents of a `Name`: sets of attributes, each an identifier and a value. Values that are not text in
    /// UTF-8 are skipped.
    fn parse(mut names: &[u8]) -> Option<Self> {
        let mut subject = Self::default();
        while !names.is_empty() {
            let mut attributes = take(&mut names, SET)?;
            while !attributes.is_empty() {
                let mut attribute = take(&mut attributes, SEQUENCE)?;
                let identifier = take(&mut attribute, OBJECT_IDENTIFIER)?;
                let (tag, value) = take_any(&mut attribute)?;
                let list = match identifier {
                    COMMON_NAME => &mut subject.common_names,
                    ORGANIZATION => &mut subject.organizations,
                    _ => continue,
                };
                if matches!(tag, UTF8_STRING | PRINTABLE_STRING | IA5_STRING)
                    && let Ok(text) = str::from_utf8(value)
                {
                    list.push(text.to_owned());
                }
            }
        }
        Some(subject)
    }
}

/// Removes the first element from `der` and returns its contents, if it has this tag.
fn take<'a>(der: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (found, contents) = take_any(der)?;
    (found == tag).then_some(contents)
}

/// Removes the first element from `der` and returns its tag and contents.
fn take_any<'a>(der: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        // The length follows in one byte or in two. No subject is longer.
        0x81 | 0x82 => {
            let (length, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (length.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (contents, rest) = rest.split_at_checked(length)?;
    *der = rest;
    Some((tag, contents))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(tag: u8, contents: &[u8]) -> Vec<u8> {
        let mut out = vec![tag];
        match contents.len() {
            length @ 0..=0x7f => out.push(length as u8),
            length => out.extend([0x82, (length >> 8) as u8, length as u8]),
        }
        out.extend(contents);
        out
    }

    fn attribute(identifier: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        let contents = [element(OBJECT_IDENTIFIER, identifier), element(tag, value)].concat();
        element(SET, &element(SEQUENCE, &contents))
    }

    #[test]
    fn names_are_read_in_order_and_other_attributes_are_skipped() {
        let long = "x".repeat(300);
        let der = [
            attribute(ORGANIZATION, UTF8_STRING, "système:maîtres".as_bytes()),
            attribute(&[0x55, 0x04, 0x06], PRINTABLE_STRING, b"CH"),
            attribute(ORGANIZATION, PRINTABLE_STRING, long.as_bytes()),
            attribute(COMMON_NAME, IA5_STRING, b"jane"),
            attribute(COMMON_NAME, UTF8_STRING, b"\xff"),
            attribute(ORGANIZATION, 0x1e, b"\0d\0e\0v"),
        ]
        .concat();
        let expected = Subject {
            common_names: vec!["jane".to_owned()],
            organizations: vec!["système:maîtres".to_owned(), long],
        };
        assert_eq!(Subject::parse(&der), Some(expected));
    }

    #[test]
    fn a_subject_that_is_cut_short_names_nobody() {
        let der = attribute(COMMON_NAME, UTF8_STRING, b"jane");
        for end in 1..der.len() {
            assert_eq!(Subject::parse(&der[..end]), None, "{end} bytes");
        }
        assert_eq!(Subject::parse(&[SET, 0x84, 0xff, 0xff, 0xff, 0xff]), None);
    }
}
