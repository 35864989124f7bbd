//! Quantities: amounts of CPU, memory and storage, as `500m`, `1Gi`, `1e3`.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde_json::Value;

mod canonical;

/// The notation of a quantity: the suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `Ki`, `Mi`, …
    Binary,
    /// `n`, `u`, `m`, ``, `k`, `M`, …
    Decimal,
    /// `e3`, `E-6`.
    Exponent,
}

/// A quantity. `Display` writes the canonical form: no fraction, and the largest suffix that loses no precision.
///
/// Fractions of a billionth are rounded up, and amounts are capped at 2^63 - 1, as in kube-apiserver.
///
/// ```
/// use windlass_text::Quantity;
///
/// assert_eq!("0.5".parse::<Quantity>()?.to_string(), "500m");
/// assert_eq!("1024Mi".parse::<Quantity>()?.to_string(), "1Gi");
/// assert!("1Gi".parse::<Quantity>()? > "1G".parse::<Quantity>()?);
/// # Ok::<(), windlass_text::QuantityError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// The amount in billionths.
    nanos: i128,
    format: Format,
}

/// The smallest amount that a quantity counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// `m`: as in lists of resources, such as the requests of a container.
    Thousandth,
    /// `n`: as elsewhere.
    Billionth,
}

impl Rounding {
    /// Returns the power of ten.
    fn exponent(self) -> i64 {
        match self {
            Self::Thousandth => -3,
            Self::Billionth => -9,
        }
    }
}

/// The error of a text that is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// The text does not have the form of a quantity.
    Malformed,
    /// The suffix is not known.
    Suffix,
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Self::Suffix => "unable to parse quantity's suffix",
        })
    }
}

impl std::error::Error for QuantityError {}

const BILLION: i128 = 1_000_000_000;
const LARGEST: i128 = i64::MAX as i128 * BILLION;

impl Quantity {
    /// Zero, in decimal notation.
    pub const ZERO: Self = Self { nanos: 0, format: Format::Decimal };

    /// Returns a whole number, in decimal notation.
    pub const fn whole(amount: i64) -> Self {
        Self { nanos: amount as i128 * BILLION, format: Format::Decimal }
    }

    /// Rounds the amount up to a whole number.
    #[must_use]
    pub fn round_up(self) -> Self {
        let rest = self.nanos.rem_euclid(BILLION);
        if rest == 0 { self } else { Self { nanos: self.nanos - rest + BILLION, ..self } }
    }

    /// Rounds the amount away from zero.
    fn rounded(self, rounding: Rounding) -> Self {
        let unit = match rounding {
            Rounding::Thousandth => BILLION / 1000,
            Rounding::Billionth => 1,
        };
        let units = self.nanos.abs() / unit + i128::from(self.nanos % unit != 0);
        Self { nanos: self.nanos.signum() * units * unit, ..self }
    }

    /// Returns the sign: -1, 0 or 1.
    pub fn signum(&self) -> i128 {
        self.nanos.signum()
    }

    /// Returns whether the amount is a whole number.
    pub fn is_whole(&self) -> bool {
        self.nanos % BILLION == 0
    }

    /// Returns the amount in thousandths, rounded up.
    pub fn to_milli(&self) -> i128 {
        const MILLION: i128 = BILLION / 1000;
        self.nanos.div_euclid(MILLION) + i128::from(self.nanos.rem_euclid(MILLION) != 0)
    }

    /// Returns the amount if it is a whole number.
    pub fn to_i64(&self) -> Option<i64> {
        if self.is_whole() { i64::try_from(self.nanos / BILLION).ok() } else { None }
    }

    /// Returns the amount as a floating-point number, which may be rounded.
    pub fn to_f64(&self) -> f64 {
        self.nanos as f64 / BILLION as f64
    }

    /// Reads the quantity in a JSON value: a text, or a number. Returns `None` for values of other types.
    pub fn of_value(value: &Value) -> Option<Result<Self, QuantityError>> {
        match value {
            Value::String(text) => Some(text.trim().parse()),
            Value::Number(number) => Some(number.to_string().parse()),
            _ => None,
        }
    }
}

/// Adds the amounts. The sum has the format of the first amount that is not zero.
impl std::ops::Add for Quantity {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let format = if self.nanos == 0 { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_add(other.nanos), format }
    }
}

/// Subtracts the second amount. The difference has the format of the first amount that is not zero.
impl std::ops::Sub for Quantity {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        let format = if self.nanos == 0 { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_sub(other.nanos), format }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let text = Text::parse(text)?;
        let magnitude = match text.format {
            Format::Binary => binary_nanos(text.whole, text.fraction, text.exponent),
            Format::Decimal | Format::Exponent => decimal_nanos(text.whole, text.fraction, text.exponent),
        };
        Ok(Self { nanos: if text.is_negative { -magnitude } else { magnitude }, format: text.format })
    }
}

/// The parts of a quantity's text.
struct Text<'a> {
    is_negative: bool,
    /// The digits before the point, without leading zeros; `0` if there are none.
    whole: &'a str,
    fraction: &'a str,
    /// The power of ten, or of 1024.
    exponent: i32,
    format: Format,
}

impl<'a> Text<'a> {
    /// Parses a text. Digits may be missing, as in kube-apiserver: `k` is zero.
    fn parse(text: &'a str) -> Result<Self, QuantityError> {
        let (is_negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if text.is_empty() || fraction.contains('.') {
            return Err(QuantityError::Malformed);
        }
        let (exponent, format) = scale(suffix)?;
        let whole = whole.trim_start_matches('0');
        Ok(Self {
            is_negative,
            whole: if whole.is_empty() { "0" } else { whole },
            fraction,
            exponent,
            format,
        })
    }
}

/// Returns the factor of a suffix: a power of 1024 for a binary suffix, a power of ten for other suffixes.
fn scale(suffix: &str) -> Result<(i32, Format), QuantityError> {
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    if let Some(index) = binary.iter().position(|known| *known == suffix) {
        return Ok((index as i32 + 1, Format::Binary));
    }
    if let Some(index) = DECIMAL.iter().position(|known| *known == suffix) {
        return Ok((index as i32 * 3 - 9, Format::Decimal));
    }
    if let Some(Ok(exponent)) = suffix.strip_prefix(['e', 'E']).map(str::parse) {
        return Ok((exponent, Format::Exponent));
    }
    Err(if has_form_of_suffix(suffix) { QuantityError::Suffix } else { QuantityError::Malformed })
}

/// Returns whether a suffix consists of letters, a sign and digits, each of which may be missing.
fn has_form_of_suffix(suffix: &str) -> bool {
    let rest = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
    let digits = rest.strip_prefix(['+', '-']).unwrap_or(rest);
    digits.bytes().all(|digit| digit.is_ascii_digit())
}

/// Returns `whole.fraction * 10^exponent` in billionths, rounded up and capped.
fn decimal_nanos(whole: &str, fraction: &str, exponent: i32) -> i128 {
    let whole = whole.trim_start_matches('0');
    let fraction = fraction.trim_end_matches('0');
    if whole.is_empty() && fraction.is_empty() {
        return 0;
    }
    // The decimal point moves by the exponent, and by nine for billionths.
    let digits: String = [whole, fraction].concat();
    let shift = i64::from(exponent) + 9 - fraction.len() as i64;
    let length = digits.len() as i64 + shift;
    if length > 30 {
        return LARGEST;
    }
    if length < 0 {
        return 1;
    }
    let (kept, dropped) =
        if shift >= 0 { (digits.as_str(), "") } else { digits.split_at(length.max(0) as usize) };
    let mut value = kept.parse::<i128>().unwrap_or(0);
    if shift > 0 {
        value *= 10_i128.pow(shift as u32);
    }
    if dropped.bytes().any(|digit| digit != b'0') {
        value += 1;
    }
    value.min(LARGEST)
}

/// Returns `whole.fraction * 1024^exponent` in billionths, rounded up and capped.
fn binary_nanos(whole: &str, fraction: &str, exponent: i32) -> i128 {
    if whole.len() > 19 {
        return LARGEST;
    }
    let factor = 1024_i128.pow(exponent as u32);
    let whole = whole.parse::<i128>().unwrap_or(0);
    let fraction = &fraction[..fraction.len().min(12)];
    let part = fraction.parse::<i128>().unwrap_or(0);
    let scale = 10_i128.pow(fraction.len() as u32);
    let of_whole = whole.checked_mul(factor).and_then(|value| value.checked_mul(BILLION));
    // At most 10^12 * 2^60 * 10^9: two steps keep the product within 128 bits.
    let product = part * factor;
    let of_part = (product / scale) * BILLION + ((product % scale) * BILLION + scale - 1) / scale;
    of_whole.map_or(LARGEST, |value| (value + of_part).min(LARGEST))
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let sign = if self.nanos < 0 { "-" } else { "" };
        let nanos = self.nanos.abs();
        // A binary quantity below a kibibyte, or with a fraction, is written in decimal notation.
        if self.format == Format::Binary && nanos >= 1024 * BILLION && nanos % BILLION == 0 {
            let mut value = nanos / BILLION;
            let mut power = 0;
            while value % 1024 == 0 && power < 6 {
                value /= 1024;
                power += 1;
            }
            return write!(f, "{sign}{value}{}", ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][power]);
        }
        let mut value = nanos;
        let mut exponent: i64 = -9;
        while value % 1000 == 0 && exponent < 18 {
            value /= 1000;
            exponent += 3;
        }
        write!(f, "{sign}{value}{}", exponent_text(exponent, self.format))
    }
}

/// The decimal suffixes, from billionths on, each a thousand times the previous suffix.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];

/// Writes a power of ten that is a multiple of three. That of a decimal suffix is between -9 and 18.
fn exponent_text(exponent: i64, format: Format) -> String {
    match format {
        Format::Exponent if exponent == 0 => String::new(),
        Format::Exponent => format!("e{exponent}"),
        _ => usize::try_from((exponent + 9) / 3)
            .ok()
            .and_then(|index| DECIMAL.get(index))
            .copied()
            .unwrap_or_default()
            .to_owned(),
    }
}

#[cfg(test)]
mod tests;
