//! The stored text of a quantity in kube-apiserver.

use super::{Format, Quantity, QuantityError, Rounding, Text, exponent_text};

/// The most digits that Go counts in 64 bits.
const SHORT: usize = 18;

impl Quantity {
    /// Returns the stored text of kube-apiserver: the canonical form, unless Go can count the amount in 64
    /// bits and the power of ten already has a suffix. `1500` and `1.500` therefore stay, while `1.5` becomes
    /// `1500m` and `1000` becomes `1k`.
    ///
    /// # Errors
    /// The text is not a quantity.
    ///
    /// ```
    /// use windlass_text::{Quantity, Rounding};
    ///
    /// assert_eq!(Quantity::canonical("1.500", Rounding::Billionth)?, "1.500");
    /// assert_eq!(Quantity::canonical("1.5", Rounding::Billionth)?, "1500m");
    /// assert_eq!(Quantity::canonical("20u", Rounding::Thousandth)?, "1m");
    /// # Ok::<(), windlass_text::QuantityError>(())
    /// ```
    pub fn canonical(text: &str, rounding: Rounding) -> Result<String, QuantityError> {
        let parsed = Text::parse(text)?;
        if parsed.format == Format::Binary {
            let amount: Self = text.parse()?;
            return Ok(if stays_binary(&parsed) {
                text.to_owned()
            } else {
                amount.rounded(rounding).to_string()
            });
        }
        let digits = [parsed.whole, parsed.fraction].concat();
        let exponent = i64::from(parsed.exponent) - parsed.fraction.len() as i64;
        let is_short = digits.len() <= SHORT && exponent >= -9;
        let is_of_suffix = exponent % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0');
        if is_short && is_of_suffix && exponent >= rounding.exponent() {
            return Ok(text.to_owned());
        }
        let number = decimal(&digits, exponent, rounding, parsed.format);
        Ok(if parsed.is_negative && number != "0" { format!("-{number}") } else { number })
    }
}

/// Returns whether a binary quantity stays unchanged.
fn stays_binary(text: &Text<'_>) -> bool {
    let power = text.exponent * 10;
    let precision = 15 - text.whole.len() as i32 - power * 3 / 10 - 1;
    let value: Option<i64> = text.whole.parse().ok();
    let fits = |value: i64| i64::MAX >> power >= value;
    text.fraction.is_empty() && precision >= 0 && value.is_some_and(|value| value & 7 != 0 && fits(value))
}

/// Writes `digits * 10^exponent`, rounded away from zero.
fn decimal(digits: &str, exponent: i64, rounding: Rounding, format: Format) -> String {
    let (mut digits, mut exponent) = (digits.trim_start_matches('0').to_owned(), exponent);
    if digits.is_empty() {
        return "0".to_owned();
    }
    let dropped = usize::try_from(rounding.exponent() - exponent).unwrap_or(0);
    if dropped > 0 {
        exponent = rounding.exponent();
        digits = round_up(&digits, dropped);
    }
    let significant = digits.trim_end_matches('0').len();
    exponent += (digits.len() - significant) as i64;
    digits.truncate(significant);
    // The largest decimal suffix stands for 10^18.
    let largest = if format == Format::Decimal { exponent.min(18) } else { exponent };
    let shown = largest - largest.rem_euclid(3);
    digits.extend(std::iter::repeat_n('0', usize::try_from(exponent - shown).unwrap_or(0)));
    format!("{digits}{}", exponent_text(shown, format))
}

/// Divides by `10^dropped`, rounded up. The digits are not all zero.
fn round_up(digits: &str, dropped: usize) -> String {
    let kept = digits.len().saturating_sub(dropped);
    let (kept, rest) = digits.split_at(kept);
    if rest.len() == dropped && rest.bytes().all(|digit| digit == b'0') {
        return kept.to_owned();
    }
    let nines = kept.bytes().rev().take_while(|digit| *digit == b'9').count();
    let head = &kept[..kept.len() - nines];
    let (start, last) = match head.as_bytes().split_last() {
        Some((last, start)) => (&head[..start.len()], last + 1),
        None => ("", b'1'),
    };
    format!("{start}{}{}", char::from(last), "0".repeat(nines))
}
