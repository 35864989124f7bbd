//! The way in without a socket.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, Response};

use super::{Handle, RequestBody};
use crate::auth::Identity;
use crate::body::Body;

/// The server as a `tower` service of one identity: what `kube::Client::new` takes. Cheap to clone.
///
/// A request goes through the same chain as one that came over TLS, but for authentication: who asks was said when
/// the service was made, and credentials in its headers count for nothing.
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
        Box::pin(handler.handle(request.map(RequestBody::new), identity).map(Ok))
    }
}

impl std::fmt::Debug for InProcess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InProcess").field("identity", &self.identity).finish_non_exhaustive()
    }
}
