//! One compiled schema graph of types, and visitors that default, prune, validate and merge objects by it.
#![forbid(unsafe_code)]

mod field_error;
mod quote;

pub use field_error::{FieldError, FieldErrorKind};
pub use quote::{go_json, go_quote};
