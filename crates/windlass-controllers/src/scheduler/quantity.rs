//! Amounts of resources that add up.

use std::str::FromStr;

use windlass_schema::{Quantity, QuantityError};

/// An amount in thousandths of the unit: `100m` of CPU is 100, `1Ki` of memory 1,024,000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Milli(pub i128);

impl FromStr for Milli {
    type Err = QuantityError;

    /// Parses a quantity and rounds the amount up to a thousandth, as in Kubernetes.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        text.parse().map(|quantity: Quantity| Self(quantity.to_milli()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_up_to_thousandths() {
        for (text, milli) in [
            ("1", 1000),
            ("100m", 100),
            ("1.5", 1500),
            ("1Ki", 1_024_000),
            ("2e3", 2_000_000),
            ("1E", 1_000_000_000_000_000_000_000),
            ("1n", 1),
            ("-1500u", -1),
            ("0", 0),
        ] {
            assert_eq!(text.parse(), Ok(Milli(milli)), "{text}");
        }
    }
}
