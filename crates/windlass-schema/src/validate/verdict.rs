//! What came out of a check.

use crate::FieldError;

/// Errors, and how many checks were made: of several alternatives that all fail, the one that got farthest
/// is told.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    pub(super) errors: Vec<FieldError>,
    pub(super) matches: usize,
}

impl Verdict {
    pub(super) fn of(error: FieldError) -> Self {
        Self { errors: vec![error], matches: 0 }
    }

    pub(super) fn matched() -> Self {
        Self { errors: Vec::new(), matches: 1 }
    }

    /// Adds an error unless it is there already.
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
