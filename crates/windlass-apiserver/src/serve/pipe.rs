//! Requests from the same process that ask for another protocol. Such requests need a connection, and a pipe
//! is the connection.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio_util::sync::CancellationToken;

use super::switch::Switch;
use super::{Handle, RequestBody, refuse};
use crate::auth::Identity;
use crate::body::Body;
use crate::wire::ApiError;

/// The bytes that wait in each direction of a pipe.
const PIPE: usize = 64 << 10;

/// Sends a request over a pipe: the response then has a connection for `hyper::upgrade::on`.
pub(super) async fn send<B>(
    handler: Arc<dyn Handle>,
    identity: Identity,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let (near, far) = tokio::io::duplex(PIPE);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (handler, identity) = (Arc::clone(&handler), identity.clone());
        async move {
            let switch = Switch::requested(&mut request);
            let response = handler.handle(request.map(RequestBody::new), identity).await;
            let spawn = |conversation| drop(tokio::spawn(conversation));
            Ok::<_, Infallible>(switch.answer(response, CancellationToken::new(), spawn))
        }
    });
    let server = hyper::server::conn::http1::Builder::new();
    tokio::spawn(server.serve_connection(TokioIo::new(far), service).with_upgrades());
    match exchange(near, request).await {
        Ok(response) => response,
        Err(error) => refuse(&ApiError::internal(error)),
    }
}

async fn exchange<B>(near: tokio::io::DuplexStream, mut request: Request<B>) -> hyper::Result<Response<Body>>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    *request.version_mut() = http::Version::HTTP_11;
    let request = request.map(|body| body.map_err(Into::into).boxed_unsync());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await?;
    tokio::spawn(connection.with_upgrades());
    let response = sender.send_request(request).await?;
    // The sender is kept, because the connection ends without the sender.
    Ok(response.map(|body| Body::passed_on(body).holding(sender)))
}
