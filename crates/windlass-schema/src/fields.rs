//! Field ownership, the core of server-side apply: sets of field paths, and the operations of
//! structured-merge-diff on objects with a schema.
//!
//! A [`FieldSet`] is the content of `fieldsV1` in `metadata.managedFields`. [`compare`], [`merge`],
//! [`remove`] and [`extract`] work on objects. An [`Updater`] combines these functions, and computes the
//! [`Managers`] of an object after an update, and the object and the managers after an apply.
//!
//! Values may nest at most 450 deep.

mod error;
mod managers;
mod value;

mod conflicts;
mod field_set;
mod path_element;
mod v1;

mod atom;
mod go_value;
mod list_key;
mod problem;
mod schema_change;

mod atomic;
mod compare;
mod filter;
mod merge;
mod owned;
mod remove;
mod typed;

mod convert;
mod updater;

#[cfg(test)]
mod tests;

pub use atomic::atomic_paths;
pub use compare::{Comparison, compare};
pub use conflicts::{Conflict, Conflicts};
pub use convert::{Convert, ConvertError};
pub use error::{FieldsError, TypedError, TypedErrors};
pub use field_set::FieldSet;
pub use filter::{FieldFilter, FieldPattern, PatternElement};
pub use go_value::GoValue;
pub use managers::{Managed, Managers};
pub use merge::merge;
pub use path_element::{FieldPath, PathElement};
pub use remove::{extract, remove};
pub use typed::{Duplicates, validate_typed};
pub use updater::{ApplyError, Updater};
