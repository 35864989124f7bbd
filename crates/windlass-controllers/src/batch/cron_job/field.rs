//! A field of a cron schedule: a set of numbers, as bits.

/// The range of a field, and the names of the numbers, from the first number on.
pub(super) struct Range {
    pub first: u32,
    pub last: u32,
    pub names: &'static [&'static str],
}

pub(super) const MINUTES: Range = Range { first: 0, last: 59, names: &[] };
pub(super) const HOURS: Range = Range { first: 0, last: 23, names: &[] };
pub(super) const DAYS: Range = Range { first: 1, last: 31, names: &[] };
pub(super) const MONTHS: Range = Range {
    first: 1,
    last: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
pub(super) const WEEKDAYS: Range =
    Range { first: 0, last: 6, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// The numbers of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    bits: u64,
    /// True for `*` or `?`: another field decides.
    pub any: bool,
}

impl Field {
    /// Parses a list of numbers, ranges and steps: `*/15`, `1-5,10`, `mon-fri`.
    ///
    /// # Errors
    /// The error in the text.
    pub(super) fn parse(text: &str, range: &Range) -> Result<Self, String> {
        let mut field = Self::default();
        for part in text.split(',').filter(|part| !part.is_empty()) {
            field.add(part, range)?;
        }
        Ok(field)
    }

    pub(super) fn has(self, number: u32) -> bool {
        number < u64::BITS && self.bits & (1 << number) != 0
    }

    fn add(&mut self, part: &str, range: &Range) -> Result<(), String> {
        let (span, step) = match part.split_once('/') {
            None => (part, None),
            Some((_, step)) if step.contains('/') => return Err(format!("too many slashes: {part}")),
            Some((span, step)) => (span, Some(number(step)?)),
        };
        let (first, last) = if matches!(span, "*" | "?") {
            self.any |= step.is_none_or(|step| step <= 1);
            (range.first, range.last)
        } else {
            match span.split_once('-') {
                Some((_, last)) if last.contains('-') => return Err(format!("too many hyphens: {part}")),
                Some((first, last)) => (range.number(first)?, range.number(last)?),
                None => {
                    let first = range.number(span)?;
                    (first, if step.is_some() { range.last } else { first })
                }
            }
        };
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
    let parsed = text.parse::<i64>().map_err(|_| format!("failed to parse int from {text}: {text:?}"))?;
    u32::try_from(parsed).map_err(|_| format!("negative number ({text}) not allowed: {text}"))
}
