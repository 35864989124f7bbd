//! Values as Go prints them, in messages and conversions.

use super::{Library, Value, duration_text};

/// The length from which on a text is cut off, in bytes. Values share their parts, so that a small value can have a text
/// that is huge.
const MAX_LENGTH: usize = 64 << 10;

/// Formats a value as Go's `%v` does. The text of a large value is cut off.
pub(crate) fn go_display(value: &Value<'_>) -> String {
    let mut text = String::new();
    write_value(&mut text, value);
    if text.len() > MAX_LENGTH {
        text.truncate(text.floor_char_boundary(MAX_LENGTH));
        text.push_str("...");
    }
    text
}

fn write_value(text: &mut String, value: &Value<'_>) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => text.push_str(&value.to_string()),
        Value::Uint(value) => text.push_str(&value.to_string()),
        Value::Double(value) => text.push_str(&go_float(*value)),
        Value::String(value) => {
            let rest = MAX_LENGTH.saturating_sub(text.len()) + 1;
            text.push_str(&value[..value.ceil_char_boundary(rest)]);
        }
        Value::Bytes(bytes) => write_all(text, "[", bytes.iter(), " ", "]", |text, byte| {
            text.push_str(&byte.to_string());
        }),
        Value::Duration(nanos) => text.push_str(&duration_text(*nanos)),
        Value::Timestamp(timestamp) => text.push_str(&timestamp.to_string()),
        Value::List(list) => write_all(text, "[", list.iter(), ", ", "]", write_result),
        Value::Map(map) => {
            write_all(text, "{", map.entries().into_iter(), ", ", "}", |text, (key, value)| {
                write_value(text, &key);
                text.push_str(": ");
                write_result(text, value);
            });
        }
        Value::Optional(Some(value)) => {
            text.push_str("optional(");
            write_value(text, value);
            text.push(')');
        }
        Value::Optional(None) => text.push_str("optional.none()"),
        Value::Type(name) => text.push_str(name.as_str()),
        Value::Library(library) => text.push_str(&go_display_library(library)),
    }
}

fn write_result(text: &mut String, value: Result<Value<'_>, crate::Error>) {
    match value {
        Ok(value) => write_value(text, &value),
        Err(error) => text.push_str(&error.to_string()),
    }
}

/// Writes items between brackets, until the text is too long.
fn write_all<T>(
    text: &mut String,
    open: &str,
    items: impl Iterator<Item = T>,
    separator: &str,
    close: &str,
    mut write: impl FnMut(&mut String, T),
) {
    text.push_str(open);
    for (index, item) in items.enumerate() {
        if text.len() > MAX_LENGTH {
            return;
        }
        if index > 0 {
            text.push_str(separator);
        }
        write(text, item);
    }
    text.push_str(close);
}

fn go_display_library(library: &Library<'_>) -> String {
    match library {
        Library::Ip(ip) => ip.to_string(),
        Library::Cidr(cidr) => cidr.to_string(),
        Library::Url(url) => url.to_string(),
        Library::Quantity(amount) => amount.quantity.to_string(),
        Library::Semver(version) => version.to_string(),
        Library::Format(format) => format.name.to_owned(),
        Library::Check(check) => check.type_name().to_owned(),
        Library::Preserved(json) => json.to_string(),
        Library::Message(message) => message.name().to_owned(),
        Library::Composition(_) => "kubernetes.variables".to_owned(),
    }
}

/// Formats a number as Go's `%g` does: with an exponent below 10⁻⁴ and from 10⁶ on.
pub(crate) fn go_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let text = format!("{value:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return value.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::go_float;

    #[test]
    fn numbers_have_an_exponent_as_in_go() {
        let texts = [1.0, 0.5, 1e21, 1e-5, -2.5e-7, 100_000.0, 123_456_789.0].map(go_float);
        assert_eq!(texts, ["1", "0.5", "1e+21", "1e-05", "-2.5e-07", "100000", "1.23456789e+08"]);
    }
}
