//! Sends one request and reads the response. Objects never appear in a log.

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::BodyExt;
use kube_client::{Client, client::Body};
use kube_core::response::Status;
use serde::{Serialize, de::DeserializeOwned};

use super::retry::retry_after;
use crate::error::{Error, Result};

/// Sends a request and returns the body of the response, or the failure that the server reports.
pub(crate) async fn send(client: &Client, request: Request<Body>) -> Result<Bytes> {
    Ok(send_with_status(client, request).await?.1)
}

async fn send_with_status(client: &Client, request: Request<Body>) -> Result<(StatusCode, Bytes)> {
    let response = client.send(request).await?;
    let status = response.status();
    let wait = retry_after(response.headers());
    let bytes = response.into_body().collect().await?.to_bytes();
    if status.is_success() { Ok((status, bytes)) } else { Err(failure(status, wait, &bytes)) }
}

/// As [`send`], with JSON in and out.
pub(crate) async fn exchange<T: DeserializeOwned>(
    client: &Client,
    request: http::request::Builder,
    content_type: &'static str,
    body: &impl Serialize,
) -> Result<T> {
    Ok(exchange_with_status(client, request, content_type, body).await?.1)
}

/// As [`exchange`], with the HTTP status code of the response.
pub(crate) async fn exchange_with_status<T: DeserializeOwned>(
    client: &Client,
    request: http::request::Builder,
    content_type: &'static str,
    body: &impl Serialize,
) -> Result<(StatusCode, T)> {
    let body = serde_json::to_vec(body)?;
    let request = request
        .header(header::CONTENT_TYPE, content_type)
        .header(header::ACCEPT, "application/json")
        .body(Body::from(body))
        .map_err(Error::other)?;
    let (status, bytes) = send_with_status(client, request).await?;
    Ok((status, decode(&bytes)?))
}

pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T> {
    serde_json::from_slice(bytes).map_err(|cause| Error::undecodable_answer(&cause))
}

/// Returns the server's `Status`. For another body (a proxy's page), makes one from the HTTP status code.
fn failure(code: StatusCode, wait: Option<std::time::Duration>, body: &[u8]) -> Error {
    let status = serde_json::from_slice::<Status>(body)
        .ok()
        .filter(|status| status.code != 0 || !status.reason.is_empty());
    let status = status.unwrap_or_else(|| {
        let text = String::from_utf8_lossy(&body[..body.len().min(200)]).trim().to_owned();
        let mut status = Status::failure(&format!("{code}: {text}"), "");
        status.code = code.as_u16();
        status
    });
    Error::api(status.boxed(), wait)
}
