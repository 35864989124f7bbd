//! The Gregorian calendar.

/// Returns the number of days of a month, or `None` if `month` is not between 1 and 12.
pub fn days_of_month(year: u32, month: u32) -> Option<u32> {
    let leap = year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    Some(match month {
        2 => 28 + u32::from(leap),
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => return None,
    })
}
