//! The gRPC health check, version 1.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http2;
use hyper::{HeaderMap, Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::CheckResult;
use super::check::dial_error;
use crate::{Runtime, SandboxId};

/// The longest reply, in bytes.
const MOST: usize = 4096;

/// The status `SERVING`.
const SERVING: u64 = 1;

/// Asks the health service.
pub(super) async fn check(
    runtime: &dyn Runtime,
    sandbox: &SandboxId,
    port: u16,
    service: &str,
) -> CheckResult {
    match ask(runtime, sandbox, port, service).await {
        Ok(SERVING) => CheckResult::Success,
        Ok(status) => {
            let name = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"]
                .get(usize::try_from(status).unwrap_or(usize::MAX))
                .copied()
                .unwrap_or("UNKNOWN");
            CheckResult::Failure(format!("service unhealthy (responded with {name:?})"))
        }
        Err(reason) => CheckResult::Failure(reason),
    }
}

async fn ask(runtime: &dyn Runtime, sandbox: &SandboxId, port: u16, service: &str) -> Result<u64, String> {
    let stream = runtime.connect_from_outside(sandbox, port).await.map_err(|error| {
        format!("error: failed to connect service at \":{port}\": {}", dial_error(&error, "", port))
    })?;
    let text = |error: hyper::Error| format!("error: health rpc probe failed: {error}");
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.map_err(text)?;
    let connection = tokio::spawn(connection);
    let request = Request::builder()
        .method(Method::POST)
        .uri(format!("http://localhost:{port}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("user-agent", "kube-probe/1.37")
        .body(Full::new(Bytes::from(message(service))))
        .map_err(|error| error.to_string())?;
    let reply = sender.send_request(request).await.map_err(text);
    let result = async {
        let reply = reply?;
        let headers = reply.headers().clone();
        let body = Limited::new(reply.into_body(), MOST).collect().await;
        let body = body.map_err(|error| format!("error: health rpc probe failed: {error}"))?;
        let trailers = body.trailers().cloned().unwrap_or_default();
        refused(&trailers).or_else(|| refused(&headers)).map_or(Ok(()), Err)?;
        Ok(status(&body.to_bytes()).unwrap_or(0))
    }
    .await;
    connection.abort();
    result
}

/// Returns the refusal of the service, if the code of gRPC is not 0.
fn refused(headers: &HeaderMap) -> Option<String> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status")? {
        "0" => None,
        "12" => Some(
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health)"
                .to_owned(),
        ),
        code => Some(format!(
            "error: health rpc probe failed: rpc error: code = {code} desc = {}",
            text("grpc-message").unwrap_or("")
        )),
    }
}

/// Encodes a `HealthCheckRequest` in a message of gRPC.
fn message(service: &str) -> Vec<u8> {
    let mut body = Vec::new();
    if !service.is_empty() {
        body.push(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            body.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        body.push(length as u8);
        body.extend_from_slice(service.as_bytes());
    }
    let mut message = vec![0];
    message.extend_from_slice(&(body.len() as u32).to_be_bytes());
    message.extend(body);
    message
}

/// Reads the status of a `HealthCheckResponse`. A response without a status is 0, `UNKNOWN`.
fn status(message: &[u8]) -> Option<u64> {
    match message.get(5..)? {
        [] => Some(0),
        [0x08, value, ..] => Some(u64::from(*value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_protobuf_with_the_prefix_of_grpc() {
        assert_eq!(message(""), [0, 0, 0, 0, 0]);
        assert_eq!(message("ab"), [0, 0, 0, 0, 4, 0x0a, 2, b'a', b'b']);
        assert_eq!(status(&[0, 0, 0, 0, 2, 8, 1]), Some(SERVING));
        assert_eq!(status(&[0, 0, 0, 0, 0]), Some(0));
        assert_eq!(status(&[0]), None);
    }
}
