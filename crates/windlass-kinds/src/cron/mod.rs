//! The parts of a cron schedule: fields, which are sets of numbers as bits, and the interval of `@every`.

mod interval;

use windlass_schema::go_quote;

pub use self::interval::interval;

/// The range of a field, and the names of the numbers.
#[derive(Debug)]
pub struct Range {
    /// The least number.
    pub first: u32,
    /// The largest number.
    pub last: u32,
    /// The names of the numbers from `first` on; may be empty.
    pub names: &'static [&'static str],
}

/// The minutes of an hour.
pub const MINUTES: Range = Range { first: 0, last: 59, names: &[] };
/// The hours of a day.
pub const HOURS: Range = Range { first: 0, last: 23, names: &[] };
/// The days of a month.
pub const DAYS: Range = Range { first: 1, last: 31, names: &[] };
/// The months, with English names.
pub const MONTHS: Range = Range {
    first: 1,
    last: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/// The days of a week from Sunday on, with English names.
pub const WEEKDAYS: Range =
    Range { first: 0, last: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// The numbers of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    bits: u64,
    /// True for `*` or `?`: another field decides.
    pub any: bool,
}

impl Field {
    /// Parses a list of numbers, ranges and steps: `*/15`, `1-5,10`, `mon-fri`.
    ///
    /// # Errors
    /// The error in the text.
    pub fn parse(text: &str, range: &Range) -> Result<Self, String> {
        let mut field = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            field.add(part, range)?;
        }
        Ok(field)
    }

    /// Returns whether the field has no number. A list without entries (`,`) is valid.
    pub fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Returns whether the field has a number.
    pub fn has(self, number: u32) -> bool {
        number < u64::BITS && self.bits & (1 << number) != 0
    }

    fn add(&mut self, part: &str, range: &Range) -> Result<(), String> {
        let (span, step) = part.split_once('/').map_or((part, None), |(span, step)| (span, Some(step)));
        let (low, high) = span.split_once('-').map_or((span, None), |(low, high)| (low, Some(high)));
        let is_any = matches!(low, "*" | "?");
        let (first, last) = match high {
            _ if is_any => (range.first, range.last),
            Some(high) if high.contains('-') => {
                range.number(low)?;
                return Err(format!("too many hyphens: {part}"));
            }
            Some(high) => (range.number(low)?, range.number(high)?),
            None => {
                let first = range.number(low)?;
                (first, if step.is_some() { range.last } else { first })
            }
        };
        let step = match step {
            Some(step) if step.contains('/') => return Err(format!("too many slashes: {part}")),
            Some(step) => Some(number(step)?),
            None => None,
        };
        self.any |= is_any && step.is_none_or(|step| step <= 1);
        range.check(part, first, last)?;
        let step = step.unwrap_or(1);
        if step == 0 {
            return Err(format!("step of range should be a positive number: {part}"));
        }
        let numbers = (first..=last).step_by(usize::try_from(step).unwrap_or(usize::MAX));
        numbers.for_each(|number| self.bits |= 1 << number);
        Ok(())
    }
}

impl Range {
    fn number(&self, text: &str) -> Result<u32, String> {
        let named = self.names.iter().zip(self.first..).find(|(name, _)| name.eq_ignore_ascii_case(text));
        named.map_or_else(|| number(text), |(_, number)| Ok(number))
    }

    fn check(&self, part: &str, first: u32, last: u32) -> Result<(), String> {
        if first < self.first {
            return Err(format!("beginning of range ({first}) below minimum ({}): {part}", self.first));
        }
        if last > self.last {
            return Err(format!("end of range ({last}) above maximum ({}): {part}", self.last));
        }
        if first > last {
            return Err(format!("beginning of range ({first}) beyond end of range ({last}): {part}"));
        }
        Ok(())
    }
}

fn number(text: &str) -> Result<u32, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let parsed = text.parse::<i64>().map_err(|_| {
        let why = if is_number { "value out of range" } else { "invalid syntax" };
        format!("failed to parse int from {text}: strconv.Atoi: parsing {}: {why}", go_quote(text))
    })?;
    if parsed < 0 {
        return Err(format!("negative number ({parsed}) not allowed: {text}"));
    }
    // A larger number is beyond each range.
    Ok(u32::try_from(parsed).unwrap_or(u32::MAX))
}
