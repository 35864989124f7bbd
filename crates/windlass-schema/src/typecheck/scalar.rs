//! Strings with a special syntax: base64, times, quantities.

use serde_json::Value;
use windlass_text::days_of_month;

use crate::{Quantity, QuantityError};

pub(crate) fn quantity(value: &Value) -> Option<String> {
    let quantity = Quantity::of_value(value).unwrap_or(Err(QuantityError::Malformed));
    quantity.err().map(|error| error.to_string())
}

pub(crate) fn base64(text: &str) -> Option<String> {
    let bytes: Vec<(usize, u8)> =
        text.bytes().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n')).collect();
    let illegal = |at: usize| Some(format!("illegal base64 data at input byte {at}"));
    let body = bytes.iter().take_while(|(_, byte)| *byte != b'=').count();
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/';
    if let Some((at, _)) = bytes[..body].iter().find(|(_, byte)| !letter(*byte)) {
        return illegal(*at);
    }
    let padding = bytes.len() - body;
    match (body % 4, padding) {
        (0, 0) | (2, 2) | (3, 1) => None,
        (1..=3, 0) => illegal(text.len() - body % 4),
        (2, 1) => illegal(text.len()),
        (0 | 1, _) => illegal(bytes[body].0),
        _ => {
            let extra = body + 4 - body % 4;
            illegal(bytes.get(extra).map_or(text.len(), |(at, _)| *at))
        }
    }
}

/// Checks an RFC 3339 time; returns the error of Go's `time.Parse`.
pub(crate) fn time(text: &str, micros: bool) -> Option<String> {
    let layout = if micros { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let quoted = quote(text);
    let cannot = |rest: &str, part: &str| {
        let rest = quote(rest);
        Some(format!("parsing time {quoted} as \"{layout}\": cannot parse {rest} as \"{part}\""))
    };
    const PARTS: [(&str, usize); 11] = [
        ("2006", 4),
        ("-", 0),
        ("01", 2),
        ("-", 0),
        ("02", 2),
        ("T", 0),
        ("15", 2),
        (":", 0),
        ("04", 2),
        (":", 0),
        ("05", 2),
    ];
    let mut rest = text;
    let mut numbers = Vec::new();
    for (part, digits) in PARTS {
        let taken = if digits == 0 {
            rest.strip_prefix(part)
        } else {
            let number = rest.get(..digits).filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
            numbers.extend(number.and_then(|number| number.parse::<u32>().ok()));
            number.map(|_| &rest[digits..])
        };
        match taken {
            Some(after) => rest = after,
            None => return cannot(rest, part),
        }
    }
    if micros || rest.starts_with('.') {
        let fraction = rest.strip_prefix(['.', ',']).unwrap_or_default();
        let digits = fraction.len() - fraction.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if micros && digits < 6 {
            return cannot(rest, ".000000");
        }
        if digits > 0 {
            // Go reads exactly the digits of the layout.
            rest = &fraction[if micros { 6 } else { digits }..];
        }
    }
    if !is_zone(rest) {
        return cannot(rest, "Z07:00");
    }
    let most = [9999, 12, days_of_month(numbers[0], numbers[1]).unwrap_or(31), 23, 59, 59];
    let least = [0, 1, 1, 0, 0, 0];
    let names = ["year", "month", "day", "hour", "minute", "second"];
    let bad = |index: &usize| !(least[*index]..=most[*index]).contains(&numbers[*index]);
    // Go checks the day at last, because the day depends on the year and the month.
    let clock = [0, 1, 3, 4, 5].into_iter().find(bad).map(|index| names[index]);
    let bad = clock.or_else(|| bad_offset(rest)).or_else(|| bad(&2).then_some("day"))?;
    Some(format!("parsing time {quoted}: {bad} out of range"))
}

/// Quotes a text as Go's package `time` does: every byte that is not printable ASCII is a number.
fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' => quoted.push(char::from(byte)),
            _ => {
                let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
                quoted.extend(['\\', 'x', digit(byte >> 4), digit(byte & 15)]);
            }
        }
    }
    quoted.push('"');
    quoted
}

/// Returns the part of an offset that is too large. Go accepts up to 24 hours and 60 minutes.
fn bad_offset(text: &str) -> Option<&'static str> {
    let (hours, minutes) = text.strip_prefix(['+', '-'])?.split_once(':')?;
    let is_above = |part: &str, most: u32| part.parse::<u32>().is_ok_and(|number| number > most);
    if is_above(minutes, 60) {
        return Some("time zone offset minute");
    }
    is_above(hours, 24).then_some("time zone offset hour")
}

fn is_zone(text: &str) -> bool {
    let offset = || {
        let (hours, minutes) = text.strip_prefix(['+', '-'])?.split_once(':')?;
        let two = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        (two(hours) && two(minutes)).then_some(())
    };
    text == "Z" || offset().is_some()
}
