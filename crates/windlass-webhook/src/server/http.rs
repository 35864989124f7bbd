//! An HTTP request: the body, within limits.

use bytes::Bytes;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use tokio::sync::Semaphore;

use crate::{
    call::Deadline,
    webhooks::{Dispatcher, Reply, Request as Call},
};

/// The most requests at a time.
const MAX_REQUESTS: usize = 256;

/// The most KiB of bodies in memory.
const MAX_BUFFERED_KIB: usize = 160 << 10;

/// The limits that all connections share.
pub(super) struct Limits {
    requests: Semaphore,
    buffered_kib: Semaphore,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests: Semaphore::new(MAX_REQUESTS), buffered_kib: Semaphore::new(MAX_BUFFERED_KIB) }
    }
}

pub(super) async fn answer(
    request: Request<Incoming>,
    dispatcher: &Dispatcher,
    limits: &Limits,
) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let Some(limit) = dispatcher.body_limit(path) else {
        return response(plain(404, "404 page not found\n"));
    };
    // Reserve the body's declared size, or else the largest size, so that no body waits for memory halfway.
    let needed = body.size_hint().upper().map_or(limit, |size| usize::try_from(size).unwrap_or(usize::MAX));
    if needed >= limit && body.size_hint().exact().is_some() {
        return response(dispatcher.too_large(path));
    }
    let needed = needed.min(limit).div_ceil(1 << 10) as u32;
    let deadline = Deadline::from_query(head.uri.query());
    let received = deadline.run(async {
        let permits = (limits.requests.acquire().await, limits.buffered_kib.acquire_many(needed).await);
        (Limited::new(body, limit).collect().await, permits)
    });
    let Some((collected, _permits)) = received.await else {
        return response(plain(503, "the webhook server is busy, or the body did not arrive in time\n"));
    };
    let body = match collected {
        Ok(collected) => collected.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return response(dispatcher.too_large(path)),
        Err(_) => return response(plain(400, "the body was not received\n")),
    };
    let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let call = Call { path, query: head.uri.query(), content_type, body };
    response(dispatcher.answer_by(deadline, call).await)
}

fn plain(code: u16, text: &str) -> Reply {
    Reply { code, content_type: "text/plain; charset=utf-8", body: text.as_bytes().to_vec() }
}

fn response(reply: Reply) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(reply.body)));
    *response.status_mut() = StatusCode::from_u16(reply.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
    response
}
