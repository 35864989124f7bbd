//! The resource versions that a migration compares.

use std::cmp::Ordering;
use std::fmt;

/// A resource version that is a positive decimal number of any length. Extension servers may have other resource versions, which have
/// no order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResourceVersion<'a>(&'a str);

/// A resource version without an order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed(String);

impl<'a> ResourceVersion<'a> {
    /// Reads a resource version.
    ///
    /// # Errors
    ///
    /// The text is empty, begins with `0` or has other characters than digits.
    pub(super) fn of(text: &'a str) -> Result<Self, Malformed> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if is_number && !text.starts_with('0') { Ok(Self(text)) } else { Err(Malformed(text.to_owned())) }
    }
}

impl Ord for ResourceVersion<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.len(), self.0).cmp(&(other.0.len(), other.0))
    }
}

impl PartialOrd for ResourceVersion<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "resource version is not well formed: {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_any_length_are_ordered_and_other_texts_are_refused() {
        let position = |text| ResourceVersion::of(text).unwrap();
        assert!(position("9") < position("10"));
        assert!(
            position("340282366920938463463374607431768211455")
                < position("340282366920938463463374607431768211456")
        );
        for text in ["", "0", "012", "-1", "1a", "etag"] {
            let why = ResourceVersion::of(text).unwrap_err().to_string();
            assert_eq!(why, format!("resource version is not well formed: {text}"));
        }
    }
}
