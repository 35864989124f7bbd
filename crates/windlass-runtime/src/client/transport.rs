//! The transport of requests: the network, or another client.

use http::{HeaderMap, HeaderValue, Request, Response, header};
use kube_client::{Client, client::Body};
use windlass_http::{HttpClient, Message};

use super::body::Content;
use crate::error::BoxError;

/// Where requests go.
#[derive(Clone)]
pub(super) enum Transport {
    /// A client that was built elsewhere, or a server in this process.
    Client(Client),
    Http(HttpClient),
}

/// A request that is about to be sent.
pub(super) enum Outgoing<'a> {
    /// A request of kube's client.
    Request(Box<Request<Body>>),
    /// A request of the runtime itself.
    Message(&'a Message),
}

impl Transport {
    /// Sends a request. `authorization` replaces the credentials of the configuration.
    pub(super) async fn send(
        &self,
        outgoing: Outgoing<'_>,
        authorization: Option<HeaderValue>,
    ) -> Result<Response<Content>, BoxError> {
        if let (Self::Http(client), Outgoing::Message(message)) = (self, &outgoing) {
            return Ok(client.send_message(message, authorization).await?.map(Content::from));
        }
        let request = match outgoing {
            Outgoing::Request(request) => *request,
            Outgoing::Message(message) => request_of(message),
        };
        // Boxed, because callers keep the future of each message.
        Box::pin(self.send_request(authorized(request, authorization))).await
    }

    async fn send_request(&self, request: Request<Body>) -> Result<Response<Content>, BoxError> {
        match self {
            Self::Client(client) => Ok(client.send(request).await?.map(Content::from)),
            Self::Http(client) => Ok(client.send(request).await?.map(Content::from)),
        }
    }
}

impl Outgoing<'_> {
    /// Returns a copy to send again, or `None` if the body is a stream.
    pub(super) fn try_clone(&self) -> Option<Self> {
        match self {
            Self::Message(message) => Some(Self::Message(message)),
            Self::Request(request) => {
                let mut copy = Request::new(request.body().try_clone()?);
                *copy.method_mut() = request.method().clone();
                *copy.uri_mut() = request.uri().clone();
                *copy.version_mut() = request.version();
                *copy.headers_mut() = request.headers().clone();
                *copy.extensions_mut() = request.extensions().clone();
                Some(Self::Request(Box::new(copy)))
            }
        }
    }

    pub(super) fn method(&self) -> &http::Method {
        match self {
            Self::Request(request) => request.method(),
            Self::Message(message) => &message.method,
        }
    }
}

/// Returns a message as a request.
pub(super) fn request_of(message: &Message) -> Request<Body> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, message.accept.clone());
    headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if let Some(content_type) = &message.content_type {
        headers.insert(header::CONTENT_TYPE, content_type.clone());
    }
    let mut request = Request::new(Body::from(message.body.clone()));
    *request.method_mut() = message.method.clone();
    *request.uri_mut() = message.path.clone().into();
    *request.headers_mut() = headers;
    request
}

fn authorized(mut request: Request<Body>, authorization: Option<HeaderValue>) -> Request<Body> {
    if let Some(authorization) = authorization {
        request.headers_mut().insert(header::AUTHORIZATION, authorization);
    }
    request
}
