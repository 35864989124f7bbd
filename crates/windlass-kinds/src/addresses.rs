//! Validation of IP addresses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::field::{Errors, Field};

const BAD_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";

/// Returns whether a text is an IP address.
pub(super) fn is_address(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// Reports an address that no endpoint may have.
pub(super) fn endpoint_address(place: &Field<'_>, errors: &mut Errors) {
    let text = place.text();
    let Some(address) = text.parse::<IpAddr>().ok().or_else(|| without_leading_zeros(text)) else {
        errors.push(place.invalid_as(text, "must be a valid IP address"));
        return;
    };
    let (is_link_local, is_link_local_multicast) = match address {
        IpAddr::V4(address) => (address.is_link_local(), address.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(address) => (address.is_unicast_link_local(), address.segments()[0] & 0xff0f == 0xff02),
    };
    if address.is_unspecified() {
        errors.push(place.invalid(format!("may not be unspecified ({text})")));
    }
    if address.is_loopback() {
        errors.push(place.invalid("may not be in the loopback range (127.0.0.0/8, ::1/128)"));
    }
    if is_link_local {
        errors.push(place.invalid("may not be in the link-local range (169.254.0.0/16, fe80::/10)"));
    }
    if is_link_local_multicast {
        errors.push(place.invalid("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"));
    }
}

/// Reports a text that is not an IP address in the current syntax.
pub(super) fn address(place: &Field<'_>, errors: &mut Errors) {
    address_unless_known(place, &BTreeSet::new(), errors);
}

/// Reports a text that is not an IP address, unless the stored object has it.
pub(super) fn address_unless_known(place: &Field<'_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let text = place.text();
    if !known.contains(text) {
        errors.extend(address_problem(text).map(|problem| place.invalid_as(text, problem)));
    }
}

/// Returns why a text is not an IP address.
fn address_problem(text: &str) -> Option<&'static str> {
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => {
            Some("must not be an IPv4-mapped IPv6 address")
        }
        Ok(_) => None,
        Err(_) if without_leading_zeros(text).is_some() => Some("must not have leading 0s"),
        Err(_) => Some(BAD_ADDRESS),
    }
}

/// Checks the name of an IPAddress: an address in its canonical form.
pub(super) fn address_name(name: &str, _prefix: bool) -> Vec<String> {
    if let Some(problem) = address_problem(name) {
        return vec![problem.to_owned()];
    }
    let canonical = name.parse::<IpAddr>().map(|address| address.to_string());
    let other = canonical.into_iter().filter(|canonical| canonical != name);
    other.map(|canonical| format!("must be in canonical form ({canonical:?})")).collect()
}

/// Returns an IPv4 address without the zeros before its numbers.
fn without_leading_zeros(text: &str) -> Option<IpAddr> {
    let plain = |part: &str| {
        let rest = part.trim_start_matches('0');
        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| if rest.is_empty() { "0".to_owned() } else { rest.to_owned() })
    };
    let parts: Vec<String> = text.split('.').map(plain).collect::<Option<_>>()?;
    parts.join(".").parse().ok()
}

/// Reports a text that is not a range of addresses, unless the stored object has it.
pub(super) fn address_range(place: &Field<'_>, known: &BTreeSet<&str>, errors: &mut Errors) {
    let text = place.text();
    if !known.contains(text) {
        errors.extend(range_problem(text).map(|problem| place.invalid_as(text, problem)));
    }
}

/// Reports a text that is not a range of addresses in the canonical form.
pub(super) fn canonical_range(place: &Field<'_>, errors: &mut Errors) {
    let text = place.text();
    if let Some(problem) = range_problem(text) {
        errors.push(place.invalid_as(text, problem));
        return;
    }
    let canonical = parse_range(text).map(|(start, bits)| format!("{start}/{bits}"));
    if let Some(canonical) = canonical.filter(|canonical| canonical != text) {
        errors.push(place.invalid_as(text, format!("must be in canonical form ({canonical:?})")));
    }
}

/// Reports a text that is not an address of a network interface, with the length of the prefix, in the canonical form.
pub(super) fn interface_address(place: &Field<'_>, errors: &mut Errors) {
    const BAD: &str = "must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)";
    let text = place.text();
    let Some((address, bits)) = parse_range(text) else {
        errors.push(place.invalid_as(text, BAD));
        return;
    };
    let mapped =
        |address: IpAddr| matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some());
    let bits = if mapped(address) && bits > 32 { bits.saturating_sub(96) } else { bits };
    let canonical = format!("{}/{bits}", address.to_canonical());
    if text != canonical {
        errors.push(place.invalid_as(text, format!("must be in canonical form ({canonical:?})")));
    }
}

/// Returns the first address of a range and the bits that its addresses share.
pub(super) fn parse_range(text: &str) -> Option<(IpAddr, u32)> {
    let (start, length) = text.split_once('/')?;
    let start = start.parse().ok().or_else(|| without_leading_zeros(start))?;
    let width = if start.is_ipv4() { 32 } else { 128 };
    let bits: u32 = length.parse().ok().filter(|bits| *bits <= width)?;
    Some((start, bits))
}

/// Returns whether a range is in another and is smaller.
pub(super) fn is_strict_subset(inner: (IpAddr, u32), outer: (IpAddr, u32)) -> bool {
    let value = |address: IpAddr| match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let ((inner_start, inner_width), (outer_start, outer_width)) = (value(inner.0), value(outer.0));
    let shared = |start: u128| start.checked_shr(128 - outer.1).unwrap_or_default();
    inner_width == outer_width && inner.1 > outer.1 && shared(inner_start) == shared(outer_start)
}

/// Returns why a text is not a range of addresses.
fn range_problem(text: &str) -> Option<&'static str> {
    const BAD_RANGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    const ZEROS: &str = "must not have leading 0s in IP or prefix length";
    let Some((start, length)) = text.split_once('/') else { return Some(BAD_RANGE) };
    let is_number = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    let bits = length.parse::<u8>().ok().filter(|_| is_number);
    let address = start.parse::<IpAddr>().ok();
    let sloppy = address.or_else(|| without_leading_zeros(start));
    let (Some(bits), Some(sloppy)) = (bits, sloppy) else { return Some(BAD_RANGE) };
    let width = if sloppy.is_ipv4() { 32 } else { 128 };
    if bits > width {
        return Some(BAD_RANGE);
    }
    if address.is_none() || (length.len() > 1 && length.starts_with('0')) {
        return Some(ZEROS);
    }
    let (value, width) = match sloppy {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
        IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => {
            return Some("must not have an IPv4-mapped IPv6 address");
        }
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let beyond = u32::from(width - bits);
    let has_more = beyond > 0 && value.checked_shl(128 - beyond).is_some_and(|rest| rest != 0);
    has_more.then_some("must not have bits set beyond the prefix length")
}

/// Reports a list with more than one address of a family.
pub(super) fn validate_families(list: &Field<'_>, addresses: Vec<&str>, errors: &mut Errors) {
    if addresses.len() < 2 {
        return;
    }
    let mut parsed = Vec::new();
    for address in &addresses {
        let Ok(address) = address.parse::<IpAddr>() else {
            let detail = format!("failed to check for dual stack with error:invalid IP: {address}");
            errors.push(list.internal(detail));
            break;
        };
        parsed.push(address.is_ipv4());
    }
    let is_dual = parsed.len() == addresses.len() && parsed.contains(&true) && parsed.contains(&false);
    if !is_dual || addresses.len() > 2 {
        let error = list.invalid("may specify no more than one IP for each IP family");
        let shown: Vec<String> =
            addresses.iter().map(|text| format!("{{\"IP\":{}}}", windlass_schema::go_quote(text))).collect();
        errors.push(error.showing(format!("[{}]", shown.join(","))));
    }
}

/// Returns the warning about an address that is not in the usual form.
pub(super) fn address_warning(field: &str, text: &str) -> Option<String> {
    let quote = windlass_schema::go_quote;
    match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
            Some(plain) => Some(non_standard(field, "IP address", text, &plain.to_string())),
            None if address.to_string() != text => Some(format!(
                "{field}: IPv6 address {} should be in RFC 5952 canonical format ({})",
                quote(text),
                quote(&address.to_string())
            )),
            None => None,
        },
        Ok(IpAddr::V4(_)) => None,
        Err(_) => without_leading_zeros(text)
            .map(|plain| non_standard(field, "IP address", text, &plain.to_string())),
    }
}

fn non_standard(field: &str, what: &str, text: &str, plain: &str) -> String {
    let quote = windlass_schema::go_quote;
    format!("{field}: non-standard {what} {} is invalid: use {}", quote(text), quote(plain))
}

/// Returns the warning about a range of addresses that is not in the usual form.
pub(super) fn range_warning(field: &str, text: &str) -> Option<String> {
    let quote = windlass_schema::go_quote;
    let (start, bits) = parse_range(text)?;
    let (value, width) = match start {
        IpAddr::V4(address) => (u128::from(u32::from(address)) << 96, 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    };
    let first = value.checked_shr(128 - bits).map_or(0, |shared| shared << (128 - bits));
    let network: IpAddr = match start {
        IpAddr::V4(_) => std::net::Ipv4Addr::from((first >> 96) as u32).into(),
        IpAddr::V6(_) => std::net::Ipv6Addr::from(first).into(),
    };
    let plain = format!("{network}/{bits}");
    if network != start {
        return Some(format!(
            "{field}: CIDR value {} is ambiguous in this context (should be {} or {}?)",
            quote(text),
            quote(&plain),
            quote(&format!("{start}/{width}"))
        ));
    }
    let is_strict = text.split_once('/').is_some_and(|(start, length)| {
        start.parse::<IpAddr>().is_ok() && (length == "0" || !length.starts_with('0'))
    });
    if !is_strict {
        return Some(non_standard(field, "CIDR value", text, &plain));
    }
    (start.is_ipv6() && plain != text).then(|| {
        format!(
            "{field}: IPv6 CIDR value {} should be in RFC 5952 canonical format ({})",
            quote(text),
            quote(&plain)
        )
    })
}
