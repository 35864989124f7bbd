//! The result of a check.

use crate::FieldError;

/// Errors, and the number of checks that were made. If all branches of a junctor fail, the errors of the branch with
/// the most checks are reported.
#[derive(Debug, Default)]
pub(super) struct ValidationResult {
    pub(super) errors: Vec<FieldError>,
    pub(super) matches: usize,
    /// True if a value differs from the old value.
    pub(super) differs: bool,
}

impl ValidationResult {
    pub(super) fn failed(error: FieldError) -> Self {
        Self { errors: vec![error], ..Self::default() }
    }

    pub(super) fn matched() -> Self {
        Self { matches: 1, ..Self::default() }
    }

    /// Adds an error unless the list has an equal error.
    pub(super) fn add(&mut self, error: FieldError) {
        // The error that stands for all further errors is the last error.
        if self.errors.last() != Some(&error) && !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        self.differs |= other.differs;
        if self.errors.is_empty() {
            self.errors = other.errors;
        } else {
            other.errors.into_iter().for_each(|error| self.add(error));
        }
    }

    pub(super) fn merge_counted(&mut self, other: Self) {
        self.merge(other);
        self.matches += 1;
    }
}
