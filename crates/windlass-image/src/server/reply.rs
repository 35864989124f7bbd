//! Replies and errors of the registry.

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use serde::Serialize;
use serde_json::json;

use crate::Error;

pub(super) type Body = UnsyncBoxBody<Bytes, std::io::Error>;

/// Makes a body of bytes.
pub(super) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

pub(super) fn json<T: Serialize>(status: StatusCode, document: &T) -> Response<Body> {
    respond(
        status,
        &[("content-type", "application/json")],
        full(serde_json::to_vec(document).unwrap_or_default()),
    )
}

/// Makes a response. A value that is no header value is left out.
pub(super) fn respond(status: StatusCode, headers: &[(&'static str, &str)], body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    for (name, value) in headers {
        if let Ok(value) = http::HeaderValue::from_str(value) {
            response.headers_mut().insert(*name, value);
        }
    }
    response
        .headers_mut()
        .insert("docker-distribution-api-version", http::HeaderValue::from_static("registry/2.0"));
    response
}

/// An error of the registry, with the codes of the distribution protocol.
#[derive(Debug)]
pub(super) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", "the path is not known")
    }

    pub(super) fn unsupported() -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "UNSUPPORTED", "The operation is unsupported.")
    }

    pub(super) fn name_invalid() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "NAME_INVALID", "invalid repository name")
    }

    pub(super) fn name_unknown() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NAME_UNKNOWN", "repository name not known to registry")
    }

    pub(super) fn manifest_unknown() -> Self {
        Self::new(StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN", "manifest unknown")
    }

    pub(super) fn manifest_invalid(why: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "MANIFEST_INVALID", why)
    }

    pub(super) fn blob_unknown() -> Self {
        Self::new(StatusCode::NOT_FOUND, "BLOB_UNKNOWN", "blob unknown to registry")
    }

    pub(super) fn digest_invalid() -> Self {
        Self::new(StatusCode::BAD_REQUEST, "DIGEST_INVALID", "provided digest did not match uploaded content")
    }

    pub(super) fn upload_unknown() -> Self {
        Self::new(StatusCode::NOT_FOUND, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry")
    }

    pub(super) fn into_response(self) -> Response<Body> {
        json(self.status, &json!({ "errors": [{ "code": self.code, "message": self.message }] }))
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::WrongDigest { .. } => Self::digest_invalid(),
            Error::NotFound(_) => Self::blob_unknown(),
            other => Self::new(StatusCode::INTERNAL_SERVER_ERROR, "UNKNOWN", other.to_string()),
        }
    }
}
