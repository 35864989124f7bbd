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
pub struct ErrorBudget(Cell<usize>);

impl Default for ErrorBudget {
    fn default() -> Self {
        Self(Cell::new(BUDGET))
    }
}

impl ErrorBudget {
    /// Creates the budget for the errors of an object: about a thousand errors, or a megabyte of text.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a budget that the first error spends.
    pub fn of_one() -> Self {
        Self(Cell::new(1))
    }

    /// Returns whether the budget is spent. A spent budget is no reason for another error.
    pub fn is_spent(&self) -> bool {
        self.0.get() == 0
    }

    /// Returns the error that stands for the errors beyond a budget.
    pub fn others() -> FieldError {
        FieldError::forbidden("<nil>", "too many errors; the others are not listed")
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

    /// Charges an error.
    pub fn spend(&self, error: &FieldError) {
        let value = error.bad_value.as_ref().filter(|value| value.is_array() || value.is_object());
        let value = value.map_or(0, |value| value.to_string().len());
        let cost = ERROR_COST + error.field.len() + error.detail.len() + value;
        self.spend_bytes(cost);
    }

    /// Charges a number of bytes.
    pub fn spend_bytes(&self, bytes: usize) {
        self.0.set(self.0.get().saturating_sub(bytes));
    }

    /// Returns the error that `make` creates, or a short error if the budget is spent.
    pub(crate) fn error(&self, make: impl FnOnce() -> FieldError) -> FieldError {
        if self.is_spent() {
            return Self::others();
        }
        let error = make();
        self.spend(&error);
        error
    }
}

/// A list of errors. After the budget is spent, the list takes no more errors, and has at least one error.
#[derive(Debug)]
pub struct ErrorList {
    list: Vec<FieldError>,
    budget: ErrorBudget,
}

impl Default for ErrorList {
    fn default() -> Self {
        Self { list: Vec::new(), budget: ErrorBudget::new() }
    }
}

impl ErrorList {
    /// Creates an empty list with the budget of an object.
    pub fn new() -> Self {
        Self::default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns whether the list takes no more errors.
    pub fn is_full(&self) -> bool {
        self.budget.is_spent()
    }

    /// Adds an error, unless the list is full.
    pub fn push(&mut self, error: FieldError) {
        if !self.is_full() {
            self.budget.spend(&error);
            self.list.push(error);
        }
    }

    /// Sorts the errors by their text.
    pub(crate) fn sort(&mut self) {
        self.list.sort_by_cached_key(ToString::to_string);
    }

    /// Returns the errors. The last error of a full list stands for the other errors.
    pub fn into_vec(mut self) -> Vec<FieldError> {
        if self.is_full() {
            self.list.push(ErrorBudget::others());
        }
        self.list
    }
}

impl Extend<FieldError> for ErrorList {
    fn extend<T: IntoIterator<Item = FieldError>>(&mut self, errors: T) {
        for error in errors {
            if self.is_full() {
                return;
            }
            self.push(error);
        }
    }
}
