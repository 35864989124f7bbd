//! The canonical form of quantities (`500m`, `1Gi`).

use serde_json::Value;

use crate::graph::NodeRef;

const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const NANO: i128 = 1_000_000_000;

/// Canonicalises a quantity; any other value is left unchanged.
pub(super) fn canonicalize(value: &mut Value, schema: NodeRef<'_>) {
    if schema.format() != Some("quantity") {
        return;
    }
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return,
    };
    if let Some(canonical) = canonical(&text) {
        *value = canonical.into();
    }
}

/// Whether a text is a valid quantity.
pub(crate) fn is_quantity(text: &str) -> bool {
    canonical(text).is_some()
}

#[derive(Clone, Copy, PartialEq)]
enum Style {
    Decimal,
    Binary,
    Exponent,
}

/// Returns the canonical form: no fraction, and the largest suffix that loses no precision.
fn canonical(text: &str) -> Option<String> {
    let (nano, style) = parse(text)?;
    Some(match style {
        Style::Binary if nano.abs() >= 1024 * NANO => {
            let whole = nano.div_euclid(NANO) + i128::from(nano.rem_euclid(NANO) != 0);
            let (number, steps) = reduce(whole, 1024, BINARY.len() - 1);
            format!("{number}{}", BINARY[steps])
        }
        Style::Exponent => {
            let (number, steps) = reduce(nano, 1000, usize::MAX);
            match steps as i64 * 3 - 9 {
                0 => number.to_string(),
                exponent => format!("{number}e{exponent}"),
            }
        }
        _ => {
            let (number, steps) = reduce(nano, 1000, DECIMAL.len() - 1);
            format!("{number}{}", DECIMAL[steps])
        }
    })
}

fn reduce(mut number: i128, base: i128, most: usize) -> (i128, usize) {
    if number == 0 {
        return (0, if base == 1000 { 3 } else { 0 });
    }
    let mut steps = 0;
    while steps < most && number % base == 0 {
        number /= base;
        steps += 1;
    }
    (number, steps)
}

/// Returns the amount in billionths, rounded away from zero.
fn parse(text: &str) -> Option<(i128, Style)> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || whole.len() + fraction.len() > 27
    {
        return None;
    }
    let mut numerator: i128 = format!("{whole}{fraction}").parse().ok()?;
    let mut denominator = 10_i128.checked_pow(fraction.len() as u32)?;
    let style = scale(suffix, &mut numerator, &mut denominator)?;
    numerator = numerator.checked_mul(NANO)?;
    let nano = numerator / denominator + i128::from(numerator % denominator != 0);
    Some((if negative { -nano } else { nano }, style))
}

fn scale(suffix: &str, numerator: &mut i128, denominator: &mut i128) -> Option<Style> {
    if let Some(steps) = BINARY.iter().position(|known| *known == suffix).filter(|steps| *steps > 0) {
        *numerator = numerator.checked_mul(1024_i128.checked_pow(steps as u32)?)?;
        return Some(Style::Binary);
    }
    let (exponent, style) = match DECIMAL.iter().position(|known| *known == suffix) {
        Some(steps) => (steps as i32 * 3 - 9, Style::Decimal),
        None => (suffix.strip_prefix(['e', 'E'])?.parse().ok()?, Style::Exponent),
    };
    let factor = 10_i128.checked_pow(exponent.unsigned_abs())?;
    let side = if exponent < 0 { denominator } else { numerator };
    *side = side.checked_mul(factor)?;
    Some(style)
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn quantities_have_one_form() {
        let pairs = [
            ("0.5", "500m"),
            ("1000m", "1"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000Ki", "1000Ki"),
            ("100Ki", "100Ki"),
            ("0.5Ki", "512"),
            ("1000000", "1M"),
            ("1e3", "1e3"),
            ("1500e3", "1500e3"),
            ("0", "0"),
            ("0Mi", "0"),
            ("-1000m", "-1"),
            ("1E", "1E"),
            (".5", "500m"),
            ("0.0000000001", "1n"),
        ];
        for (given, expected) in pairs {
            assert_eq!(canonical(given).as_deref(), Some(expected), "{given}");
            assert_eq!(canonical(expected).as_deref(), Some(expected), "{expected}");
        }
        for bad in ["", "x", "1.2.3", "1Kb", "--1", "1e", "99999999999999999999999999999"] {
            assert_eq!(canonical(bad), None, "{bad}");
        }
    }
}
