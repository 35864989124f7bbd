//! Helpers for JSON patches.

use super::as_text;
use crate::declare::Row;
use crate::value::Value;

pub(super) const FUNCTIONS: &[Row] =
    &[Row("jsonpatch.escapeKey", "string_jsonpatch_escapeKey_string", "string", "string", |meter, v| {
        let escaped = as_text(&v[0])?.replace('~', "~0").replace('/', "~1");
        meter.allocate(escaped.len())?;
        Ok(Value::text(escaped))
    })];
