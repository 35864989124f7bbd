//! The two ways in: TLS on a socket, and a `tower` service in the same process. Both end in one [`Handle`].

mod body;

mod in_process;

mod authority;
mod kubeconfig;
mod listen;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};

use crate::auth::Identity;

pub use authority::{Authority, ClientCertificate};
pub use body::Body;
pub use in_process::InProcess;
pub(crate) use listen::listen;
pub use listen::{Listen, ListenError, Listening};

/// What stands behind both ways in: a whole request and who asks, to a response whose body may go on for hours.
pub(crate) trait Handle: Send + Sync + 'static {
    fn handle(
        self: Arc<Self>,
        request: Request<Bytes>,
        identity: Identity,
    ) -> BoxFuture<'static, Response<Body>>;

    /// The user of a bearer token that the server itself gave out.
    fn identity_of(&self, _token: &str) -> Option<Identity> {
        None
    }
}

/// The largest request body: 3 MiB, as the real server has it.
pub(crate) const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// Reads a request's body, which has to end within [`BODY_LIMIT`].
async fn collect<B>(request: Request<B>) -> Result<Request<Bytes>, crate::wire::ApiError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    use http_body_util::{BodyExt, LengthLimitError, Limited};

    let (head, body) = request.into_parts();
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => Ok(Request::from_parts(head, body.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => {
            Err(crate::wire::ApiError::body_too_large(BODY_LIMIT))
        }
        Err(error) => Err(crate::wire::ApiError::bad_request(format!("the body could not be read: {error}"))),
    }
}

/// The reply to a request that never reaches the handler.
fn refuse(error: &crate::wire::ApiError) -> Response<Body> {
    let body = Body::full(error.status().to_json());
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(error.code()).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests;
