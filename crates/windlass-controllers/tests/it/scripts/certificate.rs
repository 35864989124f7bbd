//! A certificate as a text without parts that differ between runs: keys, the serial number, the authority and
//! times.

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use der::Decode;
use x509_cert::Certificate;
use x509_cert::time::Time;

/// The extension with the identifier of the authority's key.
const AUTHORITY_KEY: &str = "2.5.29.35";

/// Describes a certificate: PEM, in base64.
pub(super) fn describe(text: &str) -> String {
    let pem = STANDARD.decode(text).unwrap();
    let block = pem::parse(&pem).unwrap();
    let signed = Certificate::from_der(block.contents()).unwrap().tbs_certificate;
    let [begin, end] = [signed.validity.not_before, signed.validity.not_after].map(Time::to_unix_duration);
    let life = end.checked_sub(begin).unwrap().as_secs();
    let mut said = format!("{:?} for {}, {life} s", signed.version, signed.subject);
    for extension in signed.extensions.iter().flatten() {
        let id = extension.extn_id.to_string();
        let mark = if extension.critical { "!" } else { "" };
        write!(said, "; {id}{mark}=").unwrap();
        if id == AUTHORITY_KEY {
            said.push_str("AUTHORITY");
            continue;
        }
        for byte in extension.extn_value.as_bytes() {
            write!(said, "{byte:02x}").unwrap();
        }
    }
    said
}
