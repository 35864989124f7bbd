//! Checks that a value has the structure of its schema.

use serde_json::Value;

use super::error::TypedErrors;
use crate::graph::NodeRef;

/// Whether sets and associative lists may have several elements with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// Allowed: for objects that are stored or updated.
    Allow,
    /// An error: for applied configurations.
    Forbid,
}

/// Checks that a value has the structure of its schema, with the messages of structured-merge-diff. It is no
/// validation: only what ownership needs is checked.
#[expect(unused_variables, reason = "the body follows")]
pub fn validate_typed(schema: NodeRef<'_>, value: &Value, duplicates: Duplicates) -> Result<(), TypedErrors> {
    Ok(())
}
