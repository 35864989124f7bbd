//! Responses.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use serde_json::{Value, json};

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Reply {
    pub(super) code: u16,
    pub(super) body: Value,
    pub(super) token: Option<String>,
}

impl Reply {
    pub(super) fn ok(code: u16, body: Value) -> Self {
        Self { code, body, token: None }
    }

    /// Returns an error in the form of Neutron.
    pub(super) fn error(code: u16, kind: &str, message: impl Into<String>) -> Self {
        let message: String = message.into();
        Self::ok(code, json!({ "NeutronError": { "type": kind, "message": message, "detail": "" } }))
    }

    /// Returns the error of invalid values in a request.
    pub(super) fn invalid(message: impl std::fmt::Display) -> Self {
        Self::error(400, "InvalidInput", format!("Invalid input for operation: {message}."))
    }

    /// Returns a request that has the wrong form.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::error(400, "HTTPBadRequest", message)
    }

    pub(super) fn unauthorized() -> Self {
        let error = json!({ "code": 401, "title": "Unauthorized", "message": "The request you have made requires authentication." });
        Self::ok(401, json!({ "error": error }))
    }

    /// Returns an error that a fault makes.
    pub(super) fn fault(code: u16) -> Self {
        match code {
            401 => Self::unauthorized(),
            409 => Self::error(409, "StateConflict", "The state of the object changed meanwhile."),
            _ => Self::error(
                code,
                "HTTPInternalServerError",
                "Request Failed: internal server error while processing your request.",
            ),
        }
    }

    pub(super) fn into_response(self) -> Response<Full<Bytes>> {
        let bytes = if self.body.is_null() { Bytes::new() } else { self.body.to_string().into() };
        let mut response = Response::new(Full::new(bytes));
        *response.status_mut() = StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(token) = self.token.and_then(|token| HeaderValue::try_from(token).ok()) {
            response.headers_mut().insert("X-Subject-Token", token);
        }
        response
    }
}
