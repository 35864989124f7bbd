//! Parses Kubernetes quantities.

use std::fmt;
use std::str::FromStr;

/// An amount in thousandths of its unit: `100m` of CPU is 100, `1Ki` of memory 1,024,000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Milli(pub i128);

/// The text is not a quantity.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ParseQuantityError;

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a quantity: a number with one of the suffixes n u m k M G T P E Ki Mi Gi Ti Pi Ei, or an exponent")
    }
}

impl FromStr for Milli {
    type Err = ParseQuantityError;

    /// Parses a quantity, rounded up to a thousandth as in Kubernetes.
    fn from_str(text: &str) -> Result<Self, ParseQuantityError> {
        let digits_end = text
            .char_indices()
            .find(|(at, c)| !(c.is_ascii_digit() || *c == '.' || (*at == 0 && (*c == '+' || *c == '-'))))
            .map_or(text.len(), |(at, _)| at);
        let (number, suffix) = text.split_at(digits_end);
        let (numerator, denominator) = scale(suffix).ok_or(ParseQuantityError)?;
        let (digits, decimals) = fraction(number).ok_or(ParseQuantityError)?;
        let over =
            digits.checked_mul(numerator).and_then(|n| n.checked_mul(1000)).ok_or(ParseQuantityError)?;
        let under = denominator
            .checked_mul(10_i128.checked_pow(decimals).ok_or(ParseQuantityError)?)
            .ok_or(ParseQuantityError)?;
        Ok(Self(over.div_euclid(under) + i128::from(over.rem_euclid(under) != 0)))
    }
}

/// Splits a decimal number into its digits and the number of decimals: `12.50` into 1250 and 2.
fn fraction(number: &str) -> Option<(i128, u32)> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{decimals}");
    let bare = digits.trim_start_matches(['+', '-']);
    if bare.is_empty() || !bare.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((digits.parse().ok()?, u32::try_from(decimals.len()).ok()?))
}

/// Returns the factor of a suffix, as numerator and denominator.
fn scale(suffix: &str) -> Option<(i128, i128)> {
    let binary = |power: u32| Some((1_i128 << (10 * power), 1));
    let decimal = |power: u32| Some((10_i128.pow(power), 1));
    match suffix {
        "" => Some((1, 1)),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1000)),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        exponent => {
            let power: i32 = exponent.strip_prefix(['e', 'E'])?.parse().ok()?;
            let size = 10_i128.checked_pow(power.unsigned_abs())?;
            Some(if power < 0 { (1, size) } else { (size, 1) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_mean_what_kubernetes_says() {
        for (text, milli) in [
            ("1", 1000),
            ("100m", 100),
            ("1.5", 1500),
            (".5", 500),
            ("1Ki", 1_024_000),
            ("2e3", 2_000_000),
            ("1E", 1_000_000_000_000_000_000_000),
            ("1n", 1),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(Milli(milli)), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "m", "1kg", "--1", "1.2.3", "ten", "1e99999", "99999999999999999999999999999999999E"]
        {
            assert_eq!(text.parse::<Milli>(), Err(ParseQuantityError), "{text}");
        }
    }
}
