//! The result of a check.

use crate::FieldError;

/// The errors, and the number of checks that were made. If all branches of a junctor fail, the errors of the branch with
/// the most checks are reported.
#[derive(Debug, Default)]
pub(super) struct ValidationResult {
    pub(super) errors: Vec<FieldError>,
    /// True if a check failed, with or without an error in the list.
    pub(super) is_invalid: bool,
    pub(super) matches: usize,
    /// True if a value differs from the old value.
    pub(super) differs: bool,
}

impl ValidationResult {
    pub(super) fn failed(error: Option<FieldError>) -> Self {
        Self { errors: error.into_iter().collect(), is_invalid: true, ..Self::default() }
    }

    pub(super) fn matched() -> Self {
        Self { matches: 1, ..Self::default() }
    }

    /// Records a failed check. Adds the error, if there is one, unless the list has an equal error.
    pub(super) fn add(&mut self, error: Option<FieldError>) {
        self.is_invalid = true;
        let Some(error) = error else { return };
        // The error that stands for all further errors is the last error.
        if self.errors.last() != Some(&error) && !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        self.is_invalid |= other.is_invalid;
        self.differs |= other.differs;
        if self.errors.is_empty() {
            self.errors = other.errors;
        } else {
            other.errors.into_iter().for_each(|error| self.add(Some(error)));
        }
    }

    pub(super) fn merge_counted(&mut self, other: Self) {
        self.merge(other);
        self.matches += 1;
    }
}
