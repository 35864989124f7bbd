//! Requests after which a connection may speak another protocol.

use futures::future::BoxFuture;
use http::{Request, Response, header};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_util::sync::CancellationToken;

use super::refuse;
use super::websocket::WebSocket;
use crate::body::Body;
use crate::upgrade::Upgrade;
use crate::wire::ApiError;

/// The connection of a request that asks for another protocol.
pub(super) struct Switch {
    websocket: Option<WebSocket>,
    connection: Option<OnUpgrade>,
}

impl Switch {
    /// Takes the connection out of a request with the header `Upgrade`.
    pub(super) fn requested(request: &mut Request<Incoming>) -> Self {
        let websocket = WebSocket::requested(request);
        let is_asked = request.headers().contains_key(header::UPGRADE);
        Self { websocket, connection: is_asked.then(|| hyper::upgrade::on(request)) }
    }

    /// Completes the response. `spawn` runs the conversation over the connection, until `stop` is cancelled.
    pub(super) fn answer(
        self,
        mut response: Response<Body>,
        stop: CancellationToken,
        spawn: impl FnOnce(BoxFuture<'static, ()>),
    ) -> Response<Body> {
        let Self { websocket, connection } = self;
        if let Some(conversation) = Upgrade::take(&mut response) {
            let Some(connection) = connection else {
                return refuse(&ApiError::bad_request("Upgrade request required"));
            };
            spawn(Box::pin(async move {
                match connection.await {
                    Ok(connection) => conversation(Box::new(TokioIo::new(connection)), stop).await,
                    Err(error) => tracing::debug!(%error, "a connection was not upgraded"),
                }
            }));
            return response;
        }
        let response = response.map(|body| body.until(|| stop.cancelled_owned()));
        match websocket.zip(connection) {
            Some((websocket, connection)) => websocket.answer(response, connection, spawn),
            None => response,
        }
    }
}
