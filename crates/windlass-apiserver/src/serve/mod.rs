//! The two entrances: TLS on a socket, and a `tower` service in the same process. Both call one [`Handle`].

mod deadline;
mod door;
mod request_body;

mod in_process;
mod pipe;

mod authority;
mod client_certificates;
mod connection;
mod ec_key;
mod freed_memory;
mod in_flight;
mod kubeconfig;
mod listen;
mod malformed;
mod server_certificate;
mod strangers;
mod switch;
mod unread;
mod websocket;

use std::sync::Arc;

use futures::future::BoxFuture;
use http::{HeaderMap, HeaderValue, Request, Response};
use jiff::Timestamp;

use crate::auth::Identity;
use crate::body::Body;

pub use authority::{CertificateAuthority, CertificateError, ClientCertificate};
pub(crate) use deadline::{Deadline, REQUEST_TIMEOUT, is_long_running};
pub use freed_memory::allocator_is_mimalloc;
pub(crate) use freed_memory::keep_returning as keep_returning_memory;
pub use in_process::InProcess;
pub(crate) use listen::listen;
pub use listen::{Listen, ListenError, RunningListener};
pub(crate) use request_body::{BodyMemory, RequestBody, Reservation};
pub use server_certificate::{CertificateTextError, ServerCertificate};

/// The header with the id of a request.
pub(crate) const AUDIT_ID: &str = "audit-id";

/// The handler of requests from both entrances.
pub(crate) trait Handle: Send + Sync + 'static {
    /// Answers a request of `identity`. The handler reads the body when the request is authorised.
    fn handle(
        self: Arc<Self>,
        request: Request<RequestBody>,
        identity: Identity,
    ) -> BoxFuture<'static, Response<Body>>;

    /// Counts an attempt of authentication, with the duration.
    fn authenticated(&self, _result: &crate::auth::AuthenticationResult<'_>, _took: std::time::Duration) {}

    /// Returns the time on the server's clock.
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// Returns the audit id of a request, for the response: the id of the client, or else a new id. Ids have no limit of length, as in
    /// the real server.
    fn audit_id(&self, _headers: &HeaderMap) -> Option<HeaderValue> {
        None
    }

    /// Returns the user of a bearer token that this server issued.
    fn identity_of(&self, _token: &str) -> Option<Identity> {
        None
    }
}

/// Returns the reply to a request that never reaches the handler.
fn refuse(error: &crate::wire::ApiError) -> Response<Body> {
    let body = Body::full(crate::respond::line(&error.status().to_json()));
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(error.code()).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests;
