//! How much work a request is.

use bytes::Bytes;
use http::{HeaderValue, Request, header};
use serde::de::IgnoredAny;

/// An estimate of the work of a request, from the body and from the stored object.
///
/// Work grows with the values of an object rather than with the bytes: 15 KB may describe 5,000 containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Work {
    bytes: usize,
    /// The number of values in the body, at most.
    values: usize,
    /// True for a body in protobuf or CBOR.
    is_binary: bool,
    is_yaml: bool,
}

/// A request with more bytes does not run in the task of the connection.
const SMALL_BYTES: usize = 16 << 10;
/// A request with more bytes runs on a separate thread.
const LONG_BYTES: usize = 128 << 10;
/// A request with more values runs on a separate thread: values take about a microsecond each.
const LONG_VALUES: usize = 1_500;
/// The memory of a value while a request works on an object with the value, in bytes: about two copies of a small map.
const VALUE_MEMORY: usize = 256;
/// The memory of a byte of a text: two copies.
const TEXT_MEMORY: usize = 2;
/// The memory of a byte of a binary body: a number of one byte takes 16 bytes as a value.
const BINARY_MEMORY: usize = 18;
/// The most messages in a binary body, see [`windlass_schema::decode_protobuf`].
const MAX_MESSAGES: usize = 50_000;

impl Work {
    /// Estimates the work of a request from the body.
    pub(super) fn of(request: &Request<Bytes>) -> Self {
        let body = request.body();
        let content_type =
            request.headers().get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
        let essence = content_type.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let is_binary = essence.ends_with(b"protobuf") || essence.ends_with(b"cbor");
        let values = match body.len() {
            0..512 => 0,
            // A usual message takes more bytes.
            length if is_binary => length / 8,
            _ => body.iter().filter(|byte| matches!(byte, b',' | b'{' | b'[')).count(),
        };
        let is_yaml = essence.ends_with(b"yaml") && is_yaml(body);
        Self { bytes: body.len(), values, is_binary, is_yaml }
    }

    /// Adds the work on a stored object of `bytes`.
    pub(super) fn add_object(&mut self, bytes: usize) {
        if bytes > LONG_BYTES {
            self.bytes = self.bytes.max(bytes);
        }
    }

    /// Returns whether the request may run in the task of the connection.
    pub(super) fn is_small(&self) -> bool {
        self.bytes <= SMALL_BYTES && !self.is_long()
    }

    /// Returns whether the request may keep a thread for many milliseconds.
    pub(super) fn is_long(&self) -> bool {
        self.bytes > LONG_BYTES || self.values > LONG_VALUES || self.is_yaml
    }

    /// Estimates the memory of the objects that the request makes, in bytes.
    pub(super) fn memory(&self) -> usize {
        let (each, values) = if self.is_binary {
            // The smallest message takes two bytes, and a body with more messages is refused.
            (BINARY_MEMORY, (self.bytes / 2).min(MAX_MESSAGES))
        } else {
            (TEXT_MEMORY, self.values)
        };
        self.bytes.saturating_mul(each).saturating_add(values.saturating_mul(VALUE_MEMORY))
    }
}

/// Returns whether a body is YAML: a small text may describe a large value. JSON in a body that is called YAML is not YAML,
/// because most clients that apply send JSON.
fn is_yaml(body: &Bytes) -> bool {
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    let is_json = || first == Some(&b'{') && serde_json::from_slice::<IgnoredAny>(body).is_ok();
    first.is_some() && !is_json()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(content_type: &str, body: impl Into<Bytes>) -> Work {
        Work::of(&Request::post("/").header("content-type", content_type).body(body.into()).unwrap())
    }

    #[test]
    fn work_is_measured_by_values() {
        let pod = r#"{"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "b"}]}}"#;
        assert!(work("application/json", pod).is_small());
        let many = format!("[{}{{}}]", "{},".repeat(4_999));
        assert!(many.len() < SMALL_BYTES && work("application/json", many).is_long());
        assert!(work("application/vnd.kubernetes.protobuf", vec![0; 15_000]).is_long());
        assert!(!work("application/json", format!("{:20000}", "")).is_small());
        assert!(!work("application/json", format!("{:20000}", "")).is_long());
    }

    #[test]
    fn yaml_is_long_unless_the_text_is_json() {
        assert!(work("application/yaml", "a: b").is_long());
        assert!(work("application/apply-patch+yaml; charset=utf-8", "a: b").is_long());
        assert!(work("application/apply-patch+yaml", r#"{"a": 1}"#).is_small());
        assert!(work("application/json", "a: b").is_small());
    }
}
