//! Requests from the same process, without a socket.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response, header};

use super::{Handle, RequestBody, pipe};
use crate::auth::Identity;
use crate::body::Body;

/// The server as a `tower` service for a user, for `kube::Client::new`. Cheap to clone.
///
/// A request is handled like a request over TLS, but without authentication: the user is the user of the
/// service, and credentials in the headers are ignored.
#[derive(Clone)]
pub struct InProcess {
    handler: Arc<dyn Handle>,
    identity: Identity,
}

impl InProcess {
    pub(crate) fn new(handler: Arc<dyn Handle>, identity: Identity) -> Self {
        Self { handler, identity }
    }
}

impl<B> tower_service::Service<Request<B>> for InProcess
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { handler, identity } = self.clone();
        if request.headers().contains_key(header::UPGRADE) {
            return Box::pin(pipe::send(handler, identity, request).map(Ok));
        }
        Box::pin(handler.handle(request.map(RequestBody::new), identity).map(Ok))
    }
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").field("identity", &self.identity).finish_non_exhaustive()
    }
}
