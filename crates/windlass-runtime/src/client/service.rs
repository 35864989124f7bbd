//! The layer around the transport: every request passes [`ApiService`].

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::{Request, Response};
use kube_client::client::Body;

use super::{
    ClientState,
    api_client::Reply,
    body::ResponseBody,
    call::Call,
    detached::{Detached, Progress, outlives_caller},
    exchange::Exchange,
    transport::Transport,
};
use crate::error::{BoxError, Result};

/// A request with this extension is sent once and does not count as a connection of the client: reflectors
/// and leader election have their own retries.
#[derive(Clone, Copy, Debug)]
pub struct NoRetry;

/// A request with this extension is not sent: the client answers with [`ServiceResponse`].
#[derive(Clone, Copy)]
pub(super) struct ServiceRequest;

/// The answer to [`ServiceRequest`].
#[derive(Clone)]
pub(super) struct ServiceResponse(pub(super) ApiService);

/// The layer around the transport. kube's client and the runtime's own requests share the layer. Cheap to clone.
#[derive(Clone)]
pub(crate) struct ApiService {
    pub(super) transport: Transport,
    pub(super) state: Arc<ClientState>,
}

impl ApiService {
    pub(super) fn new(transport: Transport, state: Arc<ClientState>) -> Self {
        Self { transport, state }
    }

    /// Sends a request, and returns the response as soon as the response begins.
    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<ResponseBody>, BoxError> {
        let progress = Arc::<Progress>::default();
        let outlives_caller =
            outlives_caller(request.method(), request.extensions().get::<NoRetry>().is_some());
        let exchange = Exchange::new(self.clone(), progress.clone());
        // The first poll is in the caller's task, so that the write log knows the reconcile that writes.
        let run = Box::pin(exchange.run(request));
        if outlives_caller { Detached::new(run, progress).await } else { run.await }
    }

    /// Sends a request of the runtime, and returns the complete response.
    pub(super) async fn call_whole(&self, call: Call) -> Result<Reply> {
        let progress = Arc::<Progress>::default();
        let outlives_caller = outlives_caller(&call.message.method, call.no_retry);
        let exchange = Exchange::new(self.clone(), progress.clone());
        let run = Box::pin(exchange.run_call(call));
        if outlives_caller { Detached::new(run, progress).await } else { run.await }
    }
}

impl tower::Service<Request<Body>> for ApiService {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<ResponseBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.clone();
        if request.extensions().get::<ServiceRequest>().is_some() {
            let mut response = Response::new(ResponseBody::new(Body::empty(), None));
            response.extensions_mut().insert(ServiceResponse(service));
            return Box::pin(std::future::ready(Ok(response)));
        }
        Box::pin(async move { service.send(request).await })
    }
}
