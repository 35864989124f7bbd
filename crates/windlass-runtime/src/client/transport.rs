//! The transport of requests: the network, or another client.

use http::{Request, Response};
use kube_client::{Client, client::Body};
use windlass_http::HttpClient;

use super::body::Content;
use crate::error::BoxError;

/// Where requests go.
#[derive(Clone)]
pub(super) enum Transport {
    /// A client that was built elsewhere, or a server in this process.
    Client(Client),
    Http(HttpClient),
}

impl Transport {
    pub(super) async fn send(&self, request: Request<Body>) -> Result<Response<Content>, BoxError> {
        match self {
            Self::Client(client) => Ok(client.send(request).await?.map(Content::from)),
            Self::Http(client) => Ok(client.send(request).await?.map(Content::from)),
        }
    }
}
