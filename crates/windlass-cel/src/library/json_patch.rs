//! Helpers for JSON patches.

use super::as_text;
use crate::declare::Row;
use crate::value::Value;

/// The name of the function that escapes a key. Only expressions that make patches have the function.
pub(crate) const ESCAPE_KEY: &str = "jsonpatch.escapeKey";

pub(super) const FUNCTIONS: &[Row] =
    &[Row(ESCAPE_KEY, "string_jsonpatch_escapeKey_string", "string", "string", |meter, v| {
        let escaped = as_text(&v[0])?.replace('~', "~0").replace('/', "~1");
        meter.allocate(escaped.len())?;
        Ok(Value::text(escaped))
    })];
