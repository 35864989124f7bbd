//! IP addresses and ranges of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use windlass_text::go_quote;

use super::{as_text, mismatch};
use crate::declare::Row;
use crate::error::Error;
use crate::value::{Library, Value};

/// A range of IP addresses, such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    pub(crate) address: IpAddr,
    pub(crate) bits: u8,
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("ip", "string_to_ip", "string", "net.IP", |_, v| Ok(ip(parse_ip(as_text(&v[0])?)?))),
    Row("ip", "cidr_ip", ".net.CIDR", "net.IP", |_, v| Ok(ip(as_cidr(&v[0])?.address))),
    Row("family", "ip_family", ".net.IP", "int", |_, v| {
        Ok(Value::Int(if as_ip(&v[0])?.is_ipv4() { 4 } else { 6 }))
    }),
    Row("ip.isCanonical", "ip_is_canonical", "string", "bool", |_, v| {
        let text = as_text(&v[0])?;
        Ok(Value::Bool(parse_ip(text)?.to_string() == text))
    }),
    Row("isUnspecified", "ip_is_unspecified", ".net.IP", "bool", |_, v| Ok(Value::Bool(as_ip(&v[0])?.is_unspecified()))),
    Row("isLoopback", "ip_is_loopback", ".net.IP", "bool", |_, v| Ok(Value::Bool(as_ip(&v[0])?.is_loopback()))),
    Row("isLinkLocalMulticast", "ip_is_link_local_multicast", ".net.IP", "bool", |_, v| {
        Ok(Value::Bool(is_link_local_multicast(as_ip(&v[0])?)))
    }),
    Row("isLinkLocalUnicast", "ip_is_link_local_unicast", ".net.IP", "bool", |_, v| {
        Ok(Value::Bool(is_link_local_unicast(as_ip(&v[0])?)))
    }),
    Row("isGlobalUnicast", "ip_is_global_unicast", ".net.IP", "bool", |_, v| {
        Ok(Value::Bool(is_global_unicast(as_ip(&v[0])?)))
    }),
    Row("isIP", "is_ip", "string", "bool", |_, v| Ok(Value::Bool(parse_ip(as_text(&v[0])?).is_ok()))),
    Row("string", "ip_to_string", "net.IP", "string", |_, v| Ok(Value::text(as_ip(&v[0])?.to_string()))),
    Row("cidr", "string_to_cidr", "string", "net.CIDR", |_, v| Ok(cidr(to_cidr(as_text(&v[0])?)?))),
    Row("containsIP", "cidr_contains_ip_string", ".net.CIDR string", "bool", |_, v| {
        Ok(Value::Bool(contains(as_cidr(&v[0])?, parse_ip(as_text(&v[1])?)?)))
    }),
    Row("containsIP", "cidr_contains_ip_ip", ".net.CIDR net.IP", "bool", |_, v| {
        Ok(Value::Bool(contains(as_cidr(&v[0])?, as_ip(&v[1])?)))
    }),
    Row("containsCIDR", "cidr_contains_cidr_string", ".net.CIDR string", "bool", |_, v| {
        Ok(Value::Bool(covers(as_cidr(&v[0])?, to_cidr(as_text(&v[1])?)?)))
    }),
    Row("containsCIDR", "cidr_contains_cidr", ".net.CIDR net.CIDR", "bool", |_, v| {
        Ok(Value::Bool(covers(as_cidr(&v[0])?, as_cidr(&v[1])?)))
    }),
    Row("prefixLength", "cidr_prefix_length", ".net.CIDR", "int", |_, v| {
        Ok(Value::Int(i64::from(as_cidr(&v[0])?.bits)))
    }),
    Row("masked", "cidr_masked", ".net.CIDR", "net.CIDR", |_, v| Ok(cidr(masked(as_cidr(&v[0])?)))),
    Row("isCIDR", "is_cidr", "string", "bool", |_, v| Ok(Value::Bool(parse_cidr(as_text(&v[0])?).is_ok()))),
    Row("string", "cidr_to_string", "net.CIDR", "string", |_, v| Ok(Value::text(as_cidr(&v[0])?.to_string()))),
];

fn ip<'a>(address: IpAddr) -> Value<'a> {
    Value::Library(Library::Ip(Arc::new(address)))
}

fn cidr<'a>(range: Cidr) -> Value<'a> {
    Value::Library(Library::Cidr(Arc::new(range)))
}

fn as_ip(value: &Value<'_>) -> Result<IpAddr, Error> {
    if let Value::Library(Library::Ip(address)) = value { Ok(**address) } else { mismatch() }
}

fn as_cidr(value: &Value<'_>) -> Result<Cidr, Error> {
    if let Value::Library(Library::Cidr(range)) = value { Ok(**range) } else { mismatch() }
}

fn parse_ip(text: &str) -> Result<IpAddr, Error> {
    let address = text.split('%').next().unwrap_or_default();
    let parsed = address.parse::<IpAddr>().map_err(|_| {
        Error::new(format!(
            "IP Address {text} parse error during conversion from string: ParseAddr({text}): {}",
            ip_problem(text),
            text = go_quote(text)
        ))
    })?;
    if address.len() != text.len() {
        return Err(Error::new(if parsed.is_ipv4() || text.ends_with('%') {
            format!(
                "IP Address {text} parse error during conversion from string: ParseAddr({text}): {}",
                if parsed.is_ipv4() {
                    "zones cannot be present with ipv4 addresses"
                } else {
                    "zone must be a non-empty string"
                },
                text = go_quote(text)
            )
        } else {
            format!("IP address {} with zone value is not allowed", go_quote(text))
        }));
    }
    if is_mapped(parsed) {
        return Err(Error::new(format!("IPv4-mapped IPv6 address {} is not allowed", go_quote(text))));
    }
    Ok(parsed)
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// Returns the reason why a text is no IP address, in Go's words.
pub(super) fn ip_problem(text: &str) -> String {
    if text.contains(':') {
        let bad = text.chars().find(|c| !c.is_ascii_hexdigit() && !matches!(c, ':' | '.' | '%'));
        if let Some(at) = text.find(":::") {
            return format!(
                "each colon-separated field must have at least one digit (at {})",
                go_quote(&text[at + 2..])
            );
        }
        return match bad {
            Some(c) => {
                let at = text.find(c).unwrap_or_default();
                if at == 0 || text[..at].ends_with(':') {
                    format!(
                        "each colon-separated field must have at least one digit (at {})",
                        go_quote(&text[at..])
                    )
                } else {
                    format!("unexpected character, want colon (at {})", go_quote(&text[at..]))
                }
            }
            None => "address string too short".to_owned(),
        };
    }
    if !text.contains('.') {
        return "unable to parse IP".to_owned();
    }
    let mut start = 0;
    let parts: Vec<&str> = text.split('.').collect();
    for part in &parts {
        if part.is_empty() {
            return format!("IPv4 field must have at least one digit (at {})", go_quote(&text[start..]));
        }
        if let Some(at) = part.find(|c: char| !c.is_ascii_digit()) {
            return format!("unexpected character (at {})", go_quote(&text[start + at..]));
        }
        if part.len() > 1 && part.starts_with('0') {
            return "IPv4 field has octet with leading zero".to_owned();
        }
        if part.parse::<u8>().is_err() {
            return "IPv4 field has value >255".to_owned();
        }
        start += part.len() + 1;
    }
    if parts.len() > 4 { "IPv4 address too long".to_owned() } else { "IPv4 address too short".to_owned() }
}

/// Parses a range for `cidr()`, with the prefix that `cidr()` adds to errors.
fn to_cidr(text: &str) -> Result<Cidr, Error> {
    parse_cidr(text).map_err(|error| {
        Error::new(format!("network address parse error during conversion from string: {error}"))
    })
}

fn parse_cidr(text: &str) -> Result<Cidr, Error> {
    let fail = |reason: String| {
        Error::new(format!(
            "network address parse error during conversion from string: netip.ParsePrefix({}): {reason}",
            go_quote(text)
        ))
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| fail("no '/'".to_owned()))?;
    let parsed = address
        .parse::<IpAddr>()
        .map_err(|_| fail(format!("ParseAddr({}): {}", go_quote(address), ip_problem(address))))?;
    let is_number = !bits.is_empty()
        && bits.bytes().all(|byte| byte.is_ascii_digit())
        && (bits.len() == 1 || !bits.starts_with('0'));
    if !is_number {
        return Err(fail(format!("bad bits after slash: {}", go_quote(bits))));
    }
    let most = if parsed.is_ipv4() { 32 } else { 128 };
    let count = bits.parse::<u8>().ok().filter(|count| *count <= most);
    let count = count.ok_or_else(|| fail("prefix length out of range".to_owned()))?;
    if is_mapped(parsed) {
        return Err(Error::new(format!("IPv4-mapped IPv6 address {} is not allowed", go_quote(text))));
    }
    Ok(Cidr { address: parsed, bits: count })
}

fn masked(range: Cidr) -> Cidr {
    let address = match range.address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(range.bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits() & mask))
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(range.bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & mask))
        }
    };
    Cidr { address, ..range }
}

fn contains(range: Cidr, address: IpAddr) -> bool {
    range.address.is_ipv4() == address.is_ipv4()
        && masked(range) == masked(Cidr { address, bits: range.bits })
}

fn covers(range: Cidr, other: Cidr) -> bool {
    range.bits <= other.bits && contains(range, other.address)
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[..3] == [224, 0, 0],
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    }
}

fn is_global_unicast(address: IpAddr) -> bool {
    let special = match address {
        IpAddr::V4(address) => address.is_broadcast(),
        IpAddr::V6(_) => false,
    };
    !special
        && !address.is_unspecified()
        && !address.is_loopback()
        && !address.is_multicast()
        && !is_link_local_unicast(address)
}
