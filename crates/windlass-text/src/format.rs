//! The string formats that kube-apiserver checks.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::calendar::days_of_month;

/// The names of the formats, without dashes (`date-time` and `datetime` are equal).
const KNOWN: [&str; 26] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8slongname",
    "k8sshortname",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Returns whether kube-apiserver checks this format. Unknown formats are ignored.
pub fn is_known(format: &str) -> bool {
    KNOWN.binary_search(&format.replace('-', "").as_str()).is_ok()
}

/// Returns whether a text has a format. The result is true for every unknown format.
pub fn matches(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "bsonobjectid" => text.len() == 24 && is_hex(text),
        "byte" => is_base64(text),
        "cidr" => is_cidr(text),
        "creditcard" => is_credit_card(text),
        "date" => is_date(text),
        "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hexcolor" => {
            let digits = text.strip_prefix('#').unwrap_or(text);
            matches!(digits.len(), 3 | 6) && is_hex(digits)
        }
        "hostname" => is_hostname(text),
        "ipv4" => text.contains('.') && (is_ipv4(text) || text.parse::<Ipv6Addr>().is_ok()),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "isbn" => is_isbn10(text) || is_isbn13(text),
        "isbn10" => is_isbn10(text),
        "isbn13" => is_isbn13(text),
        "k8slongname" => text.len() <= 253 && text.split('.').all(is_name_segment),
        "k8sshortname" => text.len() <= 63 && is_name_segment(text),
        "mac" => is_mac(text),
        "rgbcolor" => is_rgb(text),
        "ssn" => is_ssn(text),
        "uri" => is_request_uri(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some(b'3')),
        "uuid4" => is_uuid(text, Some(b'4')),
        "uuid5" => is_uuid(text, Some(b'5')),
        _ => true,
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let letters = body.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/');
    letters && !body.is_empty() && text.len() - body.len() <= 2 && text.len().is_multiple_of(4)
}

/// Returns whether the text is four decimal numbers; leading zeros are accepted.
fn is_ipv4(text: &str) -> bool {
    let parts: Vec<&str> = text.split('.').collect();
    let byte = |part: &&str| {
        is_digits(part)
            && part.trim_start_matches('0').len() <= 3
            && part.parse::<u32>().is_ok_and(|n| n < 256)
    };
    parts.len() == 4 && parts.iter().all(byte)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = if is_ipv4(address) {
        Ipv4Addr::BITS
    } else if address.parse::<Ipv6Addr>().is_ok() {
        Ipv6Addr::BITS
    } else {
        return false;
    };
    is_digits(bits) && bits.parse::<u32>().is_ok_and(|bits| bits <= most)
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    if (year.len(), month.len(), day.len()) != (4, 2, 2) || ![year, month, day].into_iter().all(is_digits) {
        return false;
    }
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(year), number(month), number(day));
    days_of_month(year, month).is_some_and(|days| (1..=days).contains(&day))
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let Some((date, time)) = lower.split_once('t') else { return false };
    let Some((clock, zone)) = time.split_at_checked(8) else { return false };
    let parts: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = parts[..] else { return false };
    let two = |part: &str, most: &str| part.len() == 2 && is_digits(part) && part <= most;
    let zone = strip_fraction(zone);
    let offset = |zone: &str| {
        zone.strip_prefix(['+', '-']).and_then(|zone| zone.split_once(':')).is_some_and(|(hours, minutes)| {
            hours.len() == 2 && minutes.len() == 2 && is_digits(hours) && is_digits(minutes)
        })
    };
    is_date(date)
        && two(hour, "23")
        && two(minute, "59")
        && two(second, "59")
        && (zone == "z" || offset(zone))
}

fn strip_fraction(zone: &str) -> &str {
    match zone.strip_prefix('.') {
        Some(rest) => rest.trim_start_matches(|character: char| character.is_ascii_digit()),
        None => zone,
    }
}

/// Returns whether the text is a Go duration (`1h30m`), or a number with a unit (`22 ns`, `3 days`).
fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_worded_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let (digits, after) = rest.split_at(number);
        let good = digits.matches('.').count() <= 1 && digits.bytes().any(|byte| byte.is_ascii_digit());
        let unit = ["ns", "us", "µs", "μs", "ms", "s", "m", "h"]
            .into_iter()
            .filter(|unit| after.starts_with(unit))
            .max_by_key(|unit| unit.len());
        match unit {
            Some(unit) if good => rest = &after[unit.len()..],
            _ => return false,
        }
    }
    true
}

/// Returns whether the text contains a number followed by a unit or by a word that starts with the name of a
/// unit.
fn is_worded_duration(text: &str) -> bool {
    const SHORT: [&str; 10] = ["ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w"];
    const MORE: [&str; 3] = ["sec", "min", "wk"];
    const FULL: [&str; 8] = ["nano", "micro", "milli", "second", "minute", "hour", "day", "week"];
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let after = rest[start..].trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let end = after.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(after.len());
        let unit = after[..end].to_lowercase();
        let known = SHORT.contains(&unit.as_str()) || MORE.contains(&unit.as_str());
        if known || FULL.iter().any(|full| unit.starts_with(full)) {
            return true;
        }
        rest = after;
    }
    false
}

fn is_email(text: &str) -> bool {
    let address = match text.rsplit_once('<') {
        Some((_, rest)) => match rest.strip_suffix('>') {
            Some(address) => address,
            None => return false,
        },
        None => text.trim(),
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |part: &str| {
        !part.is_empty()
            && part
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(c) || !c.is_ascii())
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    (quoted || local.split('.').all(atom)) && domain.split('.').all(atom)
}

fn is_hostname(text: &str) -> bool {
    let wide = |c: char| c.is_ascii_alphanumeric() || !c.is_ascii() && !c.is_whitespace() && !c.is_control();
    let label = |part: &str| {
        !part.is_empty()
            && part.len() <= 63
            && part.chars().all(|c| wide(c) || c == '-')
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    let top = !text.contains('.')
        || last.chars().count() >= 2 && last.chars().all(|c| c.is_ascii_alphabetic() || !c.is_ascii());
    text.len() <= 255 && top && text.split('.').all(label)
}

fn is_name_segment(text: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

fn is_mac(text: &str) -> bool {
    let groups = |separator: char, width: usize, counts: &[usize]| {
        let parts: Vec<&str> = text.split(separator).collect();
        counts.contains(&parts.len()) && parts.iter().all(|part| part.len() == width && is_hex(part))
    };
    groups(':', 2, &[6, 8, 20]) || groups('-', 2, &[6, 8, 20]) || groups('.', 4, &[3, 4, 10])
}

fn is_rgb(text: &str) -> bool {
    let Some(inside) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else {
        return false;
    };
    let parts: Vec<&str> = inside.split(',').map(str::trim).collect();
    parts.len() == 3 && parts.iter().all(|part| is_digits(part) && part.parse::<u8>().is_ok())
}

fn is_ssn(text: &str) -> bool {
    let digits: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
    let separators = |at: &[usize]| {
        text.char_indices().filter(|(_, c)| matches!(c, '-' | ' ')).all(|(index, _)| at.contains(&index))
    };
    digits.len() == 9 && is_digits(&digits) && separators(&[3, 5, 6]) && text.len() <= 11
}

fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.chars().any(|c| (c as u32) < 0x20 || c as u32 == 0x7f) {
        return false;
    }
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        _ => ("", text),
    };
    if !rest.starts_with('/') {
        return !scheme.is_empty() || rest == "*";
    }
    let path = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(after) => {
            let end = after.find('/').unwrap_or(after.len());
            let (authority, path) = after.split_at(end);
            let host = authority.rsplit('@').next().unwrap_or_default();
            if !is_authority_host(host.split('?').next().unwrap_or_default()) {
                return false;
            }
            path
        }
        None => rest,
    };
    has_valid_escapes(path.split('?').next().unwrap_or_default())
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn is_authority_host(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((name, port)) => (name, port.strip_prefix(':').unwrap_or(port)),
            None => return false,
        },
        None => host.split_once(':').unwrap_or((host, "")),
    };
    (port.is_empty() || is_digits(port))
        && has_valid_escapes(name)
        && !name.contains([' ', '<', '>', '"', '\\', '^', '`', '{', '|', '}'])
}

fn has_valid_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|after| after.get(..2).is_some_and(is_hex))
}

fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut digits = Vec::with_capacity(32);
    for byte in text.bytes() {
        match byte {
            b'-' if matches!(digits.len(), 8 | 12 | 16 | 20) => {}
            byte if byte.is_ascii_hexdigit() => digits.push(byte.to_ascii_lowercase()),
            _ => return false,
        }
    }
    let Some(version) = version else { return digits.len() == 32 && !text.contains("--") };
    digits.len() == 32
        && !text.contains("--")
        && digits[12] == version
        && (version == b'3' || b"89ab".contains(&digits[16]))
}

fn is_isbn10(text: &str) -> bool {
    let clean: Vec<u8> = text.bytes().filter(|byte| !matches!(byte, b'-' | b' ')).collect();
    let sum = clean.iter().enumerate().try_fold(0, |sum, (index, byte)| match byte {
        b'0'..=b'9' => Some(sum + (index + 1) * usize::from(byte - b'0')),
        b'X' if index == 9 => Some(sum + 100),
        _ => None,
    });
    clean.len() == 10 && sum.is_some_and(|sum| sum % 11 == 0)
}

fn is_isbn13(text: &str) -> bool {
    let clean: String = text.chars().filter(|c| !matches!(c, '-' | ' ')).collect();
    if clean.len() != 13 || !is_digits(&clean) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let sum: u32 = clean.bytes().zip(weights).map(|(byte, weight)| u32::from(byte - b'0') * weight).sum();
    sum.is_multiple_of(10)
}

fn is_credit_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| match (index % 2, digit * 2) {
            (0, _) => *digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    let number: String = digits.iter().filter_map(|digit| char::from_digit(*digit, 10)).collect();
    let issued = match number.len() {
        13 => number.starts_with('4'),
        14 => number.starts_with("30") || number.starts_with("36") || number.starts_with("38"),
        15 => ["34", "37", "2131", "1800"].iter().any(|start| number.starts_with(start)),
        16 => ["4", "51", "52", "53", "54", "55", "6011", "65", "35"]
            .iter()
            .any(|start| number.starts_with(start)),
        _ => false,
    };
    issued && sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests;
