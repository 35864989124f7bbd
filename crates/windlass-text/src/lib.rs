//! Texts of the Kubernetes API: [quantities](Quantity), regular expressions in Go's dialect ([`Pattern`]), and the
//! formats of strings ([`matches_format`]).
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod format;
mod pattern;
mod quantity;
mod quote;

mod calendar;

pub use calendar::days_of_month;
pub use format::{is_known as knows_format, matches as matches_format};
pub use pattern::{Expression, OutOfSteps, Pattern, Patterns, compile as compile_pattern};
pub use quantity::{Quantity, QuantityError, Rounding};
pub use quote::go_quote;
