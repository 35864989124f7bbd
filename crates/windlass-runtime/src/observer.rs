//! The observer of the reconciles of a manager.

use std::fmt;

/// The result of a reconcile, for [`Manager::observe_reconciles`](crate::Manager::observe_reconciles).
#[non_exhaustive]
pub struct Reconciled<'a> {
    /// The name of the controller.
    pub controller: &'a str,
    /// The key that was reconciled.
    pub key: &'a dyn fmt::Display,
    /// The error of a failed reconcile with all causes, as in the log.
    pub error: Option<&'a str>,
}

/// A function that is called after each reconcile.
pub(crate) type Observer = Box<dyn Fn(&Reconciled<'_>) + Send + Sync>;
