//! Validation of IP addresses.

use std::net::IpAddr;

use windlass_schema::FieldError;

const BAD_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// Returns whether a text is an IP address.
pub(super) fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// Returns an error for a text that is not an IP address.
pub(super) fn validate_address(field: &str, text: &str) -> Option<FieldError> {
    (!is_address(text)).then(|| FieldError::invalid(field, text, BAD_ADDRESS))
}

/// Returns an error for an address that no endpoint may have.
pub(super) fn validate_endpoint_address(field: &str, text: &str) -> Option<FieldError> {
    let Ok(address) = text.parse::<IpAddr>() else {
        return Some(FieldError::invalid(field, text, "must be a valid IP address"));
    };
    let (is_link_local, is_link_local_multicast) = match address {
        IpAddr::V4(address) => (address.is_link_local(), address.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(address) => (address.is_unicast_link_local(), address.segments()[0] & 0xff0f == 0xff02),
    };
    let why = if address.is_unspecified() {
        format!("may not be unspecified ({text})")
    } else if address.is_loopback() {
        "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
    } else if is_link_local {
        "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()
    } else if is_link_local_multicast {
        "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()
    } else {
        return None;
    };
    Some(FieldError::invalid(field, text, why))
}
