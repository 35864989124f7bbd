//! Responses: objects in the form that was asked for, errors, headers.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::api::Call;
use crate::resource::Resource;
use crate::serve::Body;
use crate::store::{Stored, write_object};
use crate::wire::{self, ApiError, Format, Negotiated, Representation, Target};

/// Whether JSON is to be indented for a person.
pub(crate) fn wants_pretty(headers: &HeaderMap, query: Option<&str>) -> bool {
    if let Some(value) = crate::route::Query::parse(query).flag("pretty") {
        return value;
    }
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    wire::pretty_by_user_agent(agent)
}

/// The plain text of a path that leads nowhere.
pub(crate) fn page_not_found() -> Response<Body> {
    let mut response = Response::new(Body::full("404 page not found\n"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// A failure as a `Status`.
pub(crate) fn error(error: &ApiError, pretty: bool) -> Response<Body> {
    let status = error.status();
    let json = status.to_json();
    let json = if pretty { indent(&json) } else { json };
    let mut response = Response::new(Body::full(json));
    *response.status_mut() = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let retry_after = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry_after > 0 {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
    }
    response
}

/// The same JSON, indented by two spaces, with the fields in the same order.
fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
    let mut depth = 0;
    let mut in_string = false;
    let mut escaped = false;
    let newline = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 2));
    };
    let mut bytes = json.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if in_string {
            out.push(byte);
            (in_string, escaped) = match byte {
                _ if escaped => (true, false),
                b'\\' => (true, true),
                b'"' => (false, false),
                _ => (true, false),
            };
            continue;
        }
        match byte {
            b'{' | b'[' => {
                out.push(byte);
                let close = if byte == b'{' { b'}' } else { b']' };
                if bytes.peek() == Some(&close) {
                    out.push(close);
                    bytes.next();
                } else {
                    depth += 1;
                    newline(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth -= 1;
                newline(&mut out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                newline(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            b'"' => {
                in_string = true;
                out.push(byte);
            }
            other => out.push(other),
        }
    }
    out
}

impl Resource {
    /// An object as this version shows it.
    pub(crate) fn show_value(&self, stored: &Stored) -> Value {
        let mut value = stored.value.clone();
        self.present(&mut value);
        value
    }

    /// The same, borrowed where nothing changes.
    pub(crate) fn show_value_if_needed<'a>(&self, stored: &'a Stored) -> Cow<'a, Value> {
        if self.shows_as_stored(stored) {
            Cow::Borrowed(&stored.value)
        } else {
            Cow::Owned(self.show_value(stored))
        }
    }

    /// Turns a stored object into one of this version.
    pub(crate) fn present(&self, value: &mut Value) {
        let version = self.api_version();
        if value.get("apiVersion").and_then(Value::as_str) != Some(&version) {
            self.strategy.convert(value, &self.version);
            if let Some(fields) = value.as_object_mut() {
                fields.insert("apiVersion".into(), version.into());
                fields.insert("kind".into(), self.kind.clone().into());
            }
        }
        if self.is_custom() && self.reread() {
            self.default_and_prune(value);
        }
    }

    /// Whether stored bytes are what this version shows.
    fn shows_as_stored(&self, stored: &Stored) -> bool {
        stored.value.get("apiVersion").and_then(Value::as_str) == Some(&self.api_version())
            && !(self.is_custom() && self.reread())
    }

    /// The bytes of an object as this version shows it.
    pub(crate) fn show(&self, stored: &Stored) -> Bytes {
        if self.shows_as_stored(stored) {
            return stored.json.clone();
        }
        object_bytes(&self.show_value(stored))
    }

    /// The bytes of an object as an item of a list: built-in kinds do not repeat kind and version there.
    pub(crate) fn write_item(&self, stored: &Stored, out: &mut Vec<u8>) {
        if !self.shows_as_stored(stored) {
            write_object(&self.show_value(stored), out);
        } else if self.is_custom() {
            out.extend_from_slice(&stored.json);
        } else {
            out.push(b'{');
            out.extend_from_slice(&stored.tail());
        }
    }
}

pub(crate) fn object_bytes(value: &Value) -> Bytes {
    let mut out = Vec::with_capacity(512);
    write_object(value, &mut out);
    out.into()
}

/// Kind, version and metadata of an object, as `PartialObjectMetadata`.
pub(crate) fn partial_metadata(object: &Value, api_version: &str) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": api_version,
        "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
    })
}

impl Call<'_> {
    /// What the client wants to get.
    pub(crate) fn negotiate(&self, target: Target) -> Result<Negotiated, ApiError> {
        let mut negotiated = wire::negotiate(self.header(header::ACCEPT), target)?;
        if wants_pretty(self.headers, None) && self.query.get("pretty").is_none()
            || self.query.flag("pretty").unwrap_or(false)
        {
            negotiated.pretty = true;
        }
        Ok(negotiated)
    }

    /// A stored object in the form that was asked for.
    pub(crate) fn object(&self, code: StatusCode, stored: &Stored) -> Result<Response<Body>, ApiError> {
        let negotiated = self.negotiate(Target::Object)?;
        if negotiated.representation == Representation::Object {
            return self.json(code, self.resource.show(stored), negotiated);
        }
        self.value_as(code, &self.resource.show_value(stored), negotiated)
    }

    /// An object that is not stored, or not as such, in the form that was asked for.
    pub(crate) fn value(&self, code: StatusCode, value: &Value) -> Result<Response<Body>, ApiError> {
        let negotiated = self.negotiate(Target::Object)?;
        self.value_as(code, value, negotiated)
    }

    fn value_as(
        &self,
        code: StatusCode,
        value: &Value,
        negotiated: Negotiated,
    ) -> Result<Response<Body>, ApiError> {
        let bytes = match negotiated.representation {
            Representation::Object => object_bytes(value),
            Representation::PartialObjectMetadata(version) => {
                object_bytes(&partial_metadata(value, version.api_version()))
            }
            Representation::Table(version) => object_bytes(&self.table(version, &[value], value)?),
        };
        self.json(code, bytes, negotiated)
    }

    /// JSON bytes in the format that was asked for, compressed if large.
    pub(crate) fn json(
        &self,
        code: StatusCode,
        json: Bytes,
        negotiated: Negotiated,
    ) -> Result<Response<Body>, ApiError> {
        let bytes = match negotiated.format {
            Format::Json if negotiated.pretty => indent(&json).into(),
            Format::Json => json,
            Format::Yaml => {
                let value: Value = serde_json::from_slice(&json).map_err(ApiError::internal)?;
                wire::to_yaml(&value)?.into()
            }
        };
        let (bytes, compressed) = wire::maybe_gzip(self.header(header::ACCEPT_ENCODING), bytes);
        let mut response = self.respond(code, Body::full(bytes), negotiated);
        if compressed {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        Ok(response)
    }

    /// A body in the negotiated format, and the warnings that came up.
    pub(crate) fn respond(&self, code: StatusCode, body: Body, negotiated: Negotiated) -> Response<Body> {
        let mut response = Response::new(body);
        *response.status_mut() = code;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(negotiated.format.content_type()));
        for warning in &self.warnings {
            let text = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{text}\"")) {
                headers.append(header::WARNING, value);
            }
        }
        response
    }
}
