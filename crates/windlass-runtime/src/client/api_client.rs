//! The client of the runtime's own requests.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use kube_client::{Client, client::Body};
use kube_core::{ObjectMeta, response::Status};
use serde::{Deserialize, de::DeserializeOwned};

use super::{
    body::ResponseBody,
    call::Call,
    refusal::status_of,
    retry::retry_after,
    service::{ApiService, NoRetry},
    transport::request_of,
};
use crate::error::{Error, Result};

/// The client of the runtime's own requests, which reach the connection without the queue and the boxed bodies of kube's client. Cheap to
/// clone.
#[derive(Clone)]
pub(crate) struct ApiClient(Route);

#[derive(Clone)]
enum Route {
    Service(ApiService),
    /// A client whose service is hidden.
    Kube(Client),
}

impl From<ApiService> for ApiClient {
    fn from(service: ApiService) -> Self {
        Self(Route::Service(service))
    }
}

impl From<Client> for ApiClient {
    fn from(client: Client) -> Self {
        Self(Route::Kube(client))
    }
}

impl ApiClient {
    /// Sends a request, and returns the response as soon as the response begins.
    pub(crate) async fn send(&self, request: Request<Body>) -> Result<Response<ResponseBody>> {
        match &self.0 {
            Route::Service(service) => service.send(request).await.map_err(Error::of_service),
            Route::Kube(client) => Ok(client.send(request).await?.map(|body| ResponseBody::new(body, None))),
        }
    }

    /// Sends a request and returns the body of the response, or the failure that the server reports.
    pub(crate) async fn call(&self, call: Call) -> Result<Bytes> {
        Ok(self.call_with_status(call).await?.1)
    }

    /// As [`call`](Self::call), with the HTTP status of the response.
    pub(crate) async fn call_with_status(&self, call: Call) -> Result<(StatusCode, Bytes)> {
        let reply = match &self.0 {
            Route::Service(service) => service.call_whole(call).await?,
            // Boxed, because callers keep the future of each request.
            Route::Kube(client) => Box::pin(call_hidden(client, call)).await?,
        };
        if reply.status.is_success() { Ok((reply.status, reply.body)) } else { Err(reply.failure()) }
    }

    /// Sends a request and decodes the response.
    pub(crate) async fn exchange<T: DeserializeOwned>(&self, call: Call) -> Result<T> {
        decode(&self.call(call).await?)
    }
}

/// Sends a request with a client whose service is hidden.
async fn call_hidden(client: &Client, call: Call) -> Result<Reply> {
    let mut request = request_of(&call.message);
    if call.no_retry {
        request.extensions_mut().insert(NoRetry);
    }
    let response = client.send(request).await?;
    Reply::of(response.map(|body| ResponseBody::new(body, None))).await
}

/// The metadata of the object in a reply, whatever the kind of the object.
#[derive(Deserialize)]
pub(crate) struct WithMetadata {
    pub(crate) metadata: ObjectMeta,
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|cause| Error::undecodable_answer(&cause))
}

/// A complete response.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    retry_after: Option<std::time::Duration>,
    pub(super) body: Bytes,
}

impl Reply {
    pub(super) async fn of(response: Response<ResponseBody>) -> Result<Self> {
        let (status, retry_after) = (response.status(), retry_after(response.headers()));
        let body = response.into_body().bytes().await.map_err(Error::of_service)?;
        Ok(Self { status, retry_after, body })
    }

    /// Returns the server's `Status`. For another body (a proxy's page), makes a `Status` from the HTTP status code.
    fn failure(&self) -> Error {
        let status = status_of(&self.body).unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&self.body[..self.body.len().min(200)]).trim().to_owned();
            let mut status = Status::failure(&format!("{}: {text}", self.status), "");
            status.code = self.status.as_u16();
            status
        });
        Error::api(status.boxed(), self.retry_after)
    }
}
