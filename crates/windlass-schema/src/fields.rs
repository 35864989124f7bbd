//! Field ownership, the core of server-side apply: sets of field paths, and the operations of
//! structured-merge-diff on objects with a schema.
//!
//! A [`FieldSet`] is what `fieldsV1` in `metadata.managedFields` holds. [`compare`], [`merge`], [`remove`] and
//! [`extract`] work on objects. An [`Updater`] combines them: it computes the [`Managers`] of an object after an
//! update, and the object and its managers after an apply.

mod conflicts;
mod error;
mod field_set;
mod managers;
mod path_element;
mod updater;
mod value;

mod compare;
mod filter;
mod merge;
mod remove;
mod typed;

pub use compare::{Comparison, compare};
pub use conflicts::{Conflict, Conflicts};
pub use error::{FieldsError, TypedError, TypedErrors};
pub use field_set::FieldSet;
pub use filter::{FieldFilter, FieldPattern, PatternElement};
pub use managers::{Managed, Managers};
pub use merge::merge;
pub use path_element::{FieldPath, PathElement};
pub use remove::{extract, remove};
pub use typed::{Duplicates, validate_typed};
pub use updater::{ApplyError, Convert, ConvertError, Updater};
