//! Decodes request bodies: JSON, YAML and Kubernetes' protobuf.

use std::fmt::Write;

use bytes::Bytes;
use serde_json::Value;

use super::{ApiError, MediaType, json, yaml};

/// The media types of objects that the server accepts.
pub const OBJECT_MEDIA_TYPES: &[&str] =
    &["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

const PREFIX_SHOWN: usize = 30;
const PROTOBUF_MAGIC: &[u8] = b"k8s\0";

/// The encoding of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// `application/json`; the default.
    Json,
    /// `application/yaml`.
    Yaml,
    /// `application/vnd.kubernetes.protobuf`.
    Protobuf,
}

impl Encoding {
    /// Returns the encoding that a `Content-Type` header names. Returns 415 for an unsupported encoding.
    pub fn of(content_type: Option<&str>) -> Result<Self, ApiError> {
        let Some(header) = content_type.filter(|header| !header.is_empty()) else { return Ok(Self::Json) };
        match MediaType::essence_of(header).as_deref() {
            Some("application/json") => Ok(Self::Json),
            Some("application/yaml") => Ok(Self::Yaml),
            Some("application/vnd.kubernetes.protobuf") => Ok(Self::Protobuf),
            _ => Err(ApiError::unsupported_media_type(OBJECT_MEDIA_TYPES)),
        }
    }
}

/// A decoded body.
#[derive(Clone, Debug)]
pub struct Decoded {
    /// The object.
    pub value: Value,
    /// The errors of strict decoding so far: duplicate fields.
    pub duplicates: Vec<String>,
    encoding: Encoding,
    text: Bytes,
}

impl Decoded {
    /// Returns all errors of strict decoding in the order of the text: the duplicate fields, and the fields (`spec.x`)
    /// that the schema does not know.
    pub fn strict_complaints(&self, unknown: &[String], is_custom: bool) -> Vec<String> {
        let unknown_text = |path: &String| unknown_field(path, is_custom);
        if self.encoding != Encoding::Json || (unknown.len() < 2 && self.duplicates.is_empty()) {
            return self.duplicates.iter().cloned().chain(unknown.iter().map(unknown_text)).collect();
        }
        let of_duplicate = |text: &'_ String| -> String {
            let path = text.strip_prefix("duplicate field \"").and_then(|rest| rest.strip_suffix('"'));
            path.unwrap_or_default().to_owned()
        };
        let duplicates: Vec<String> = self.duplicates.iter().map(of_duplicate).collect();
        let paths = duplicates.iter().chain(unknown).map(String::as_str);
        let found = json::occurrences(&self.text, paths);
        let (of_duplicates, of_unknown) = found.split_at(duplicates.len());
        // A duplicate is reported at the second occurrence, an unknown field at the first occurrence.
        let duplicates = of_duplicates.iter().map(|found| found.second).zip(self.duplicates.iter().cloned());
        let unknown = of_unknown.iter().map(|found| found.first).zip(unknown.iter().map(unknown_text));
        let mut complaints: Vec<_> = duplicates
            .chain(unknown)
            .map(|(position, text)| (position.unwrap_or(usize::MAX), text))
            .collect();
        complaints.sort_by_key(|(position, _)| *position);
        complaints.into_iter().map(|(_, text)| text).collect()
    }
}

/// Returns the complaint about a field that the schema does not know. The path is escaped, except in custom objects.
pub fn unknown_field(path: &str, is_custom: bool) -> String {
    if is_custom {
        format!("unknown field \"{path}\"")
    } else {
        format!("unknown field {}", windlass_schema::go_quote(path))
    }
}

/// Decodes the body of a request for an object of `kind`. Errors name the kind.
///
/// `protobuf` decodes a message with the `k8s\0` prefix. The caller checks the `apiVersion` and `kind` of the value.
///
/// # Errors
/// 400 with kube-apiserver's message if the body does not parse or is not an object.
pub fn decode_body(
    content_type: Option<&str>,
    body: &Bytes,
    kind: &str,
    protobuf: impl FnOnce(&[u8]) -> Result<Value, String>,
) -> Result<Decoded, ApiError> {
    let encoding = Encoding::of(content_type)?;
    decode_object(encoding, body, protobuf).map_err(|why| {
        ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            body_summary(body)
        ))
    })
}

/// Decodes the options in a body, for example `DeleteOptions`. The errors do not quote the body.
pub fn decode_options(
    content_type: Option<&str>,
    body: &Bytes,
    protobuf: impl FnOnce(&[u8]) -> Result<Value, String>,
) -> Result<Decoded, ApiError> {
    decode_object(Encoding::of(content_type)?, body, protobuf).map_err(ApiError::bad_request)
}

fn decode_object(
    encoding: Encoding,
    body: &Bytes,
    protobuf: impl FnOnce(&[u8]) -> Result<Value, String>,
) -> Result<Decoded, String> {
    let (value, duplicates) = match encoding {
        Encoding::Json => {
            let head = "couldn't get version/kind; json parse error: ";
            let mut parsed = json::parse(body).map_err(|why| format!("{head}{why}"))?;
            if parsed.value.is_null() {
                // Go decodes an empty body as an object without fields.
                parsed.value = Value::Object(serde_json::Map::new());
            }
            if !parsed.value.is_object() {
                return Err(format!("{head}{}", not_an_object(&parsed.value)));
            }
            let duplicates = parsed
                .duplicates
                .iter()
                .map(|path| format!("duplicate field {}", windlass_schema::go_quote(path)))
                .collect();
            (parsed.value, duplicates)
        }
        Encoding::Yaml => {
            let mut parsed = yaml::parse(body)?;
            if parsed.value.is_null() {
                parsed.value = Value::Object(serde_json::Map::new());
            }
            if !parsed.value.is_object() {
                let head = "couldn't get version/kind; json parse error: ";
                return Err(format!("{head}{}", not_an_object(&parsed.value)));
            }
            (parsed.value, parsed.duplicates)
        }
        Encoding::Protobuf => {
            if body.is_empty() {
                return Err("empty data".to_owned());
            }
            if !body.starts_with(PROTOBUF_MAGIC) {
                return Err(
                    "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
                        .to_owned(),
                );
            }
            (protobuf(body)?, Vec::new())
        }
    };
    Ok(Decoded { value, duplicates, encoding, text: body.clone() })
}

/// Returns the start of a body for an error: text if the body looks like JSON, otherwise hexadecimal.
pub fn body_summary(body: &[u8]) -> String {
    let shown = &body[..body.len().min(PREFIX_SHOWN)];
    let more = if body.len() > PREFIX_SHOWN { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => {
            let mut hex = String::with_capacity(2 * PREFIX_SHOWN + more.len());
            for byte in shown {
                _ = write!(hex, "{byte:02x}");
            }
            hex + more
        }
    }
}

/// Returns the error of Go's decoder for a document that is not an object.
pub fn not_an_object(value: &Value) -> String {
    let what = windlass_schema::json_type(value);
    format!(
        "json: cannot unmarshal {what} into Go value of type struct {{ APIVersion string \
         \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
}

#[cfg(test)]
mod tests;
