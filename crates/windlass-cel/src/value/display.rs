//! Values as Go prints them, in messages and conversions.

use super::{Library, Value, duration_text};

/// Formats a value as Go's `%v` does.
pub(crate) fn go_display(value: &Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => go_float(*value),
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => {
            let bytes: Vec<String> = bytes.iter().map(u8::to_string).collect();
            format!("[{}]", bytes.join(" "))
        }
        Value::Duration(nanos) => duration_text(*nanos),
        Value::Timestamp(timestamp) => timestamp.to_string(),
        Value::List(list) => {
            let items: Vec<String> = list
                .iter()
                .map(|item| item.map_or_else(|error| error.to_string(), |item| go_display(&item)))
                .collect();
            format!("[{}]", items.join(", "))
        }
        Value::Map(map) => {
            let show = |(key, value): (Value<'_>, Result<Value<'_>, _>)| {
                let value =
                    value.map_or_else(|error: crate::Error| error.to_string(), |value| go_display(&value));
                format!("{}: {value}", go_display(&key))
            };
            let entries: Vec<String> = map.entries().into_iter().map(show).collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::Optional(Some(value)) => format!("optional({})", go_display(value)),
        Value::Optional(None) => "optional.none()".to_owned(),
        Value::Type(name) => name.as_str().to_owned(),
        Value::Library(library) => go_display_library(library),
    }
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
