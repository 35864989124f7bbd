//! Base64.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::{as_text, mismatch};
use crate::declare::Row;
use crate::error::Error;
use crate::value::Value;

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("base64.decode", "base64_decode_string", "string", "bytes", |meter, v| {
        let text = as_text(&v[0])?;
        meter.allocate(text.len())?;
        let decoded = STANDARD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text));
        decoded.map(|bytes| Value::Bytes(Arc::from(bytes))).map_err(|error| Error::new(error.to_string()))
    }),
    Row("base64.encode", "base64_encode_bytes", "bytes", "string", |meter, v| {
        let Value::Bytes(bytes) = &v[0] else { return mismatch() };
        meter.allocate(bytes.len() * 2)?;
        Ok(Value::text(STANDARD.encode(bytes)))
    }),
];
