//! Ranges of costs and sizes.

/// A cost or size between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The lower bound.
    pub min: u64,
    /// The upper bound. `u64::MAX` also stands for more.
    pub max: u64,
}

impl Range {
    pub(crate) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };

    pub(crate) const fn fixed(amount: u64) -> Self {
        Self { min: amount, max: amount }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(crate) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Multiplies by a factor, and rounds up.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self { min: scaled(self.min, factor), max: scaled(self.max, factor) }
    }

    pub(crate) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

fn scaled(amount: u64, factor: f64) -> u64 {
    let amount = amount as f64;
    if amount > 0.0 && factor > 0.0 && amount > u64::MAX as f64 / factor {
        return u64::MAX;
    }
    let product = (amount * factor).ceil();
    if product >= 18_446_744_073_709_551_616.0 { u64::MAX } else { product as u64 }
}
