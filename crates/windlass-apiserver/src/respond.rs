//! Responses: errors, partial metadata, indented JSON, headers.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use serde_json::Value;
use windlass_schema::{Catalog, ProtobufEncoder};

use crate::body::Body;
use crate::store::write_object;
use crate::wire::{self, ApiError, Format, Negotiated, Target};

/// Returns whether the client wants indented JSON.
pub(crate) fn wants_pretty(headers: &HeaderMap, query: Option<&str>) -> bool {
    if let Some(value) = crate::route::Query::parse(query).pretty() {
        return value;
    }
    let agent = headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    wire::pretty_by_user_agent(agent)
}

/// Returns the response to an unknown path.
pub(crate) fn page_not_found() -> Response<Body> {
    let mut response = Response::new(Body::full("404 page not found\n"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Returns the response to a request that is refused because too many requests are in flight.
pub(crate) fn too_many_requests() -> Response<Body> {
    let mut response = page_not_found().map(|_| Body::full("Too many requests, please try again later.\n"));
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(1));
    response
}

/// Returns the response to a path with a verb and no resource.
pub(crate) fn unclear_path(uri: &http::Uri) -> Response<Body> {
    let shown = uri.path_and_query().map_or_else(|| uri.path(), http::uri::PathAndQuery::as_str);
    let safe = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let text = safe(&format!(
        "Internal Server Error: {}: failed to create RequestInfo: unable to determine kind and namespace from url, {shown}\n",
        windlass_schema::go_quote(shown)
    ));
    let mut response = page_not_found().map(|_| Body::full(text));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

/// Appends the line feed that compact JSON ends with.
pub(crate) fn line(json: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(json.len() + 1);
    line.extend_from_slice(json);
    line.push(b'\n');
    line
}

/// Returns the response to a failure, with a `Status` in the format that the client wants.
pub(crate) fn error(error: &ApiError, headers: &HeaderMap, query: Option<&str>) -> Response<Body> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    error_in(error, wire::negotiate(accept, Target::Document).ok(), headers, query)
}

/// Returns the response to a failure, with a `Status` in the negotiated format.
pub(crate) fn error_in(
    error: &ApiError,
    negotiated: Option<Negotiated>,
    headers: &HeaderMap,
    query: Option<&str>,
) -> Response<Body> {
    let status = error.status();
    let json = status.to_json();
    let (format, body) = match negotiated {
        Some(Negotiated { format: Format::Yaml, .. }) => (Format::Yaml, yaml(&json)),
        Some(Negotiated { format: Format::Protobuf, .. }) => match protobuf(&json) {
            Ok(message) => (Format::Protobuf, message),
            Err(_) => (Format::Json, line(&json)),
        },
        // Where negotiation fails, the real server writes for people.
        Some(wanted) if !wanted.pretty && !wants_pretty(headers, query) => (Format::Json, line(&json)),
        _ => (Format::Json, indent(&json)),
    };
    let mut response = Response::new(Body::full(body));
    *response.status_mut() = StatusCode::from_u16(error.code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    let retry_after = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
    if retry_after > 0 {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(retry_after));
    }
    response
}

/// Writes JSON as YAML.
fn yaml(json: &[u8]) -> Vec<u8> {
    let value = serde_json::from_slice(json).unwrap_or_default();
    wire::to_yaml(&value).map_or_else(|_| json.to_vec(), String::into_bytes)
}

/// Encodes an object of a built-in kind, a `Status`, or the metadata of any object in protobuf.
///
/// # Errors
/// 500 if the kind has no encoding.
pub(crate) fn protobuf(json: &[u8]) -> Result<Vec<u8>, ApiError> {
    let mut encoder = ProtobufEncoder::new(Catalog::builtin());
    encoder.object(json).map(<[u8]>::to_vec).map_err(ApiError::internal)
}

/// Indents JSON by two spaces. The order of the fields stays.
pub(crate) fn indent(json: &[u8]) -> Vec<u8> {
    indent_at(json, 0)
}

/// Indents JSON that is inside of `depth` objects and lists.
pub(crate) fn indent_at(json: &[u8], mut depth: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 2);
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

pub(crate) fn object_bytes(value: &Value) -> Bytes {
    let mut out = Vec::with_capacity(512);
    write_object(value, &mut out);
    out.into()
}

/// Appends the `PartialObjectMetadata` of an object. The metadata is given as bytes.
pub(crate) fn write_partial_metadata(metadata: &[u8], api_version: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"");
    out.extend_from_slice(api_version.as_bytes());
    out.extend_from_slice(b"\",\"metadata\":");
    out.extend_from_slice(if metadata.is_empty() { b"{}" } else { metadata });
    out.push(b'}');
}

/// Adds a `Warning` header for each sentence.
pub(crate) fn warn(headers: &mut HeaderMap, warnings: &[String]) {
    for value in wire::warning_headers(warnings) {
        if let Ok(value) = HeaderValue::from_bytes(&value) {
            headers.append(header::WARNING, value);
        }
    }
}
