//! The result of a check.

use crate::FieldError;

/// Errors, and the number of checks that were made. If all branches of a junctor fail, the errors of the branch with
/// the most checks are reported.
#[derive(Debug, Default)]
pub(super) struct ValidationResult {
    pub(super) errors: Vec<FieldError>,
    pub(super) matches: usize,
}

impl ValidationResult {
    pub(super) fn failed(error: FieldError) -> Self {
        Self { errors: vec![error], matches: 0 }
    }

    pub(super) fn matched() -> Self {
        Self { errors: Vec::new(), matches: 1 }
    }

    /// Adds an error unless an equal one was added before.
    pub(super) fn add(&mut self, error: FieldError) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        other.errors.into_iter().for_each(|error| self.add(error));
    }

    pub(super) fn merge_counted(&mut self, other: Self) {
        self.merge(other);
        self.matches += 1;
    }
}
