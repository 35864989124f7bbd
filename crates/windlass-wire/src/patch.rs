//! JSON patch (RFC 6902) and merge patch (RFC 7386) with kube-apiserver's rules.
//!
//! A patch comes from a client, and the result is therefore bounded: a [`JsonPatch`] copies at most
//! [`Limits::copied_bytes`], nests at most [`Limits::depth`] levels and shifts at most [`Limits::work`]
//! elements. The result of a merge patch is never deeper or larger than the object and the patch together.

mod apply;
mod measure;
mod merge;
mod operation;
mod pointer;

use serde_json::Value;

pub use apply::{JsonPatchError, Mismatch};
pub use merge::merge_patch;

use crate::json;
use operation::Operation;

/// The limits of applying a JSON patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The deepest nesting of objects and arrays in the result.
    pub depth: usize,
    /// The JSON bytes that all `copy` operations together may copy.
    pub copied_bytes: usize,
    /// The array elements that all operations together may shift by inserting and removing. A value that
    /// moves to a deeper place is measured; each value inside counts as [`Limits::MEASURED`] shifted
    /// elements.
    pub work: usize,
}

impl Limits {
    /// The largest number of operations in a patch.
    pub const OPERATIONS: usize = 10_000;
    /// The cost of measuring one value, in units of [`work`](Self::work).
    pub const MEASURED: usize = 8;
}

impl Default for Limits {
    /// Returns the limits of the server. `copied_bytes` is kube-apiserver's limit. kube-apiserver has no
    /// limit of work, and allows results 10,000 levels deep.
    fn default() -> Self {
        Self { depth: json::MAX_DEPTH, copied_bytes: 3 * 1024 * 1024, work: 16 << 20 }
    }
}

/// A JSON patch that has been read.
#[derive(Clone, Debug)]
pub struct JsonPatch {
    operations: Vec<Operation>,
    unknown: Vec<String>,
}

impl JsonPatch {
    /// Reads the operations of a patch. `null` is a patch without operations.
    ///
    /// If `typed`, the types of the members are checked, as kube-apiserver does unless the client asks for
    /// `fieldValidation=Ignore`; otherwise an operation with a member of a wrong type does not apply.
    ///
    /// # Errors
    /// The patch is not a list of objects. The error is the error of Go's decoder.
    pub fn read(patch: Value, typed: bool) -> Result<Self, String> {
        operation::read(patch, typed)
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Returns whether the patch has no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Returns the paths of the members that operations do not have: `[0].odd`.
    pub fn unknown_members(&self) -> &[String] {
        &self.unknown
    }

    /// Applies the operations in order.
    ///
    /// Where kube-apiserver differs from RFC 6902, this does too: a negative index counts from the end of an array;
    /// `replace` adds a member that is missing; a missing member equals `null` in `test` and `copy`; `add` without a
    /// value adds `null`; and text before the first `/` of a path is ignored.
    ///
    /// # Errors
    /// If an operation does not apply, or the result exceeds `limits`.
    pub fn apply(&self, document: Value, limits: &Limits) -> Result<Value, JsonPatchError> {
        apply::apply(document, &self.operations, limits)
    }
}

#[cfg(test)]
mod tests;
