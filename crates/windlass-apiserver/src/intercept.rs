//! The hook for faults that tests inject.

use bytes::Bytes;
use http::{Request, Response};

use crate::auth::Identity;
use crate::body::Body;

/// Sees requests before the server does, and replies before the client does: for injecting faults.
///
/// The hook sees only requests that have been authenticated and authorised and have a received body. The body of a request to a
/// `proxy` is empty here, because the server passes the body on as the body arrives.
///
/// ```
/// use windlass_apiserver::{Body, Identity, RequestInterceptor, Server};
///
/// /// Refuses all writes.
/// struct ReadOnly;
///
/// impl RequestInterceptor for ReadOnly {
///     fn before(
///         &self,
///         request: &http::Request<bytes::Bytes>,
///         _: &Identity,
///     ) -> Option<http::Response<Body>> {
///         let reads = *request.method() == http::Method::GET;
///         (!reads).then(|| {
///             let mut response = http::Response::new(Body::empty());
///             *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
///             response
///         })
///     }
/// }
///
/// Server::builder().intercept(ReadOnly).build()?;
/// # Ok::<(), windlass_apiserver::BuildError>(())
/// ```
pub trait RequestInterceptor: Send + Sync {
    /// Called with each request. If a response is returned, the response is the reply, and the server does
    /// not handle the request.
    fn before(&self, _request: &Request<Bytes>, _identity: &Identity) -> Option<Response<Body>> {
        None
    }

    /// Called with each reply, after the effects of the request. The returned response is sent instead.
    fn after(&self, _request: &Request<Bytes>, response: Response<Body>) -> Response<Body> {
        response
    }
}
