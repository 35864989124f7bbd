//! Limits of the errors about an object.

use std::cell::Cell;

use crate::FieldError;

/// The budget for the errors of an object: about a thousand errors, or a megabyte of text.
const BUDGET: usize = 1000 * ERROR_COST;

/// The cost of an error besides the bytes of the text.
const ERROR_COST: usize = 1024;

/// A budget for errors: an object of a few megabytes can have a million errors, each with a path as long as
/// the object.
#[derive(Debug)]
pub(crate) struct ErrorBudget(Cell<usize>);

impl ErrorBudget {
    pub(crate) fn new() -> Self {
        Self(Cell::new(BUDGET))
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.0.get() == 0
    }

    /// Returns the remaining budget.
    pub(crate) fn left(&self) -> usize {
        self.0.get()
    }

    /// Returns to the budget before some errors were made, minus the cost of the `kept` errors.
    pub(crate) fn rewind(&self, left: usize, kept: &[FieldError]) {
        self.0.set(left);
        kept.iter().for_each(|error| self.spend(error));
    }

    fn spend(&self, error: &FieldError) {
        let value = error.bad_value.as_ref().filter(|value| value.is_array() || value.is_object());
        let value = value.map_or(0, |value| value.to_string().len());
        let cost = ERROR_COST + error.field.len() + error.detail.len() + value;
        self.0.set(self.0.get().saturating_sub(cost));
    }

    /// Returns the error that `make` creates, or a short error if the budget is spent.
    pub(crate) fn error(&self, make: impl FnOnce() -> FieldError) -> FieldError {
        if self.is_spent() {
            return FieldError::forbidden("<nil>", "too many errors; the others are not listed");
        }
        let error = make();
        self.spend(&error);
        error
    }
}

/// A list of errors. After the budget is spent, the list takes no more errors, and has at least one error.
#[derive(Debug)]
pub(crate) struct ErrorList {
    list: Vec<FieldError>,
    budget: ErrorBudget,
}

impl ErrorList {
    pub(crate) fn new() -> Self {
        Self { list: Vec::new(), budget: ErrorBudget::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns whether the list takes no more errors.
    pub(crate) fn is_full(&self) -> bool {
        self.budget.is_spent()
    }

    pub(crate) fn push(&mut self, error: FieldError) {
        if !self.is_full() {
            self.budget.spend(&error);
            self.list.push(error);
        }
    }

    /// Sorts the errors by their text.
    pub(crate) fn sort(&mut self) {
        self.list.sort_by_cached_key(ToString::to_string);
    }

    pub(crate) fn into_vec(self) -> Vec<FieldError> {
        self.list
    }
}

impl Extend<FieldError> for ErrorList {
    fn extend<T: IntoIterator<Item = FieldError>>(&mut self, errors: T) {
        errors.into_iter().for_each(|error| self.push(error));
    }
}
