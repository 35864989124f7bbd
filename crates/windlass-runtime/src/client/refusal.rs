//! Refused requests: the `Status` of an answer, and the time that the server asks the client to wait.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt;
use kube_client::client::Body;
use kube_core::response::{Status, StatusDetails};

use super::{body::ResponseBody, retry::retry_after};
use crate::error::BoxError;

/// The bytes of a text that become the message of a `Status`: the page of a proxy may be long.
const MAX_MESSAGE: usize = 2048;

/// Returns the server's `Status`; `None` for another body, such as the page of a proxy.
pub(super) fn status_of(body: &[u8]) -> Option<Status> {
    let status = serde_json::from_slice::<Status>(body).ok()?;
    (status.code != 0 || !status.reason.is_empty()).then_some(status)
}

/// Writes the time of the header `Retry-After` of a refusal into the `Status` in the body: an error of kube's client has the `Status` only. A
/// limit of the server refuses a request with a plain text, which becomes the message of a `Status`, as in client-go.
pub(super) async fn with_retry_after(
    response: Response<ResponseBody>,
) -> Result<Response<ResponseBody>, BoxError> {
    let asked = retry_after(response.headers()).filter(|_| is_refusal(response.status()));
    let Some(asked) = asked.filter(|_| is_text(response.headers())) else { return Ok(response) };
    let (mut parts, body) = response.into_parts();
    let body = body.collect().await?.to_bytes();
    let status = status_with(parts.status, &body, asked);
    let body = serde_json::to_vec(&status)?;
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    Ok(Response::from_parts(parts, ResponseBody::new(Body::from(body), None)))
}

fn is_refusal(status: StatusCode) -> bool {
    matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE)
}

/// Returns whether the body is neither compressed nor protobuf.
fn is_text(headers: &HeaderMap) -> bool {
    let has = |name, text: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.is_some_and(|value| value.contains(text))
    };
    let is_plain =
        !headers.contains_key(header::CONTENT_ENCODING) || has(header::CONTENT_ENCODING, "identity");
    is_plain && !has(header::CONTENT_TYPE, "protobuf")
}

/// Returns the `Status` of a body, or a `Status` with the text of the body, with the time to wait.
fn status_with(code: StatusCode, body: &[u8], asked: Duration) -> Status {
    let mut status = status_of(body).unwrap_or_else(|| {
        let reason =
            if code == StatusCode::TOO_MANY_REQUESTS { "TooManyRequests" } else { "ServiceUnavailable" };
        let text = String::from_utf8_lossy(&body[..body.len().min(MAX_MESSAGE)]);
        Status::failure(text.trim(), reason).with_code(code.as_u16())
    });
    let details = status.details.get_or_insert_with(no_details);
    if details.retry_after_seconds == 0 {
        details.retry_after_seconds = asked.as_secs().try_into().unwrap_or(u32::MAX);
    }
    status
}

fn no_details() -> StatusDetails {
    StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn status(code: u16, body: &str) -> Status {
        let response = Response::builder().status(code).header(header::RETRY_AFTER, "7");
        let body = ResponseBody::new(Body::from(body.as_bytes().to_vec()), None);
        let response = with_retry_after(response.body(body).expect("a response")).await.expect("read");
        let body = response.into_body().bytes().await.expect("a body");
        serde_json::from_slice(&body).expect("a status")
    }

    fn seconds(status: &Status) -> u32 {
        status.details.as_ref().map_or(0, |details| details.retry_after_seconds)
    }

    #[tokio::test]
    async fn the_status_of_a_refusal_has_the_time_to_wait() {
        let text = status(429, "Too many requests, please try again later.\n").await;
        assert_eq!((text.code, text.reason.as_str(), seconds(&text)), (429, "TooManyRequests", 7));
        assert_eq!(text.message, "Too many requests, please try again later.");
        let page = status(503, &"<html>".repeat(1_000)).await;
        assert!(page.message.len() <= MAX_MESSAGE);
        assert_eq!((page.code, page.reason.as_str(), seconds(&page)), (503, "ServiceUnavailable", 7));
        let own = r#"{"code":429,"reason":"TooManyRequests","message":"m","details":{"kind":"pods","retryAfterSeconds":2}}"#;
        let own = status(429, own).await;
        assert_eq!((own.message.as_str(), seconds(&own)), ("m", 2));
        assert_eq!(own.details.map(|details| details.kind).as_deref(), Some("pods"));
        assert_eq!(seconds(&status(429, r#"{"code":429,"message":"m"}"#).await), 7);
    }
}
