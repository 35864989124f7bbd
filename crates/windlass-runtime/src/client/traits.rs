//! The properties of a request that decide how the request is sent.

use std::time::Duration;

use http::{HeaderMap, Method, Request, header};
use kube_client::client::Body;
use windlass_http::Message;

use super::{
    path::{ResourcePath, query_flag},
    retry::Repeatable,
    service::NoRetry,
};

/// The properties of a request that decide how the request is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestTraits {
    pub(super) repeatable: Repeatable,
    /// The request counts as one of the client's requests in progress.
    pub(super) needs_permit: bool,
    /// The response goes on for as long as the caller reads.
    pub(super) stream: bool,
}

impl RequestTraits {
    pub(super) fn of(request: &Request<Body>) -> Self {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        let content_type = content_type(headers);
        let no_retry = request.extensions().get::<NoRetry>().is_some();
        let traits = Self::new(method, (uri.path(), uri.query()), content_type, no_retry);
        if headers.contains_key(header::UPGRADE) { Self::STREAM } else { traits }
    }

    pub(super) fn of_message(message: &Message, no_retry: bool) -> Self {
        let content_type = message.content_type.as_ref().map_or(&b""[..], |value| value.as_bytes());
        let path = (message.path.path(), message.path.query());
        Self::new(&message.method, path, content_type, no_retry)
    }

    const STREAM: Self = Self { repeatable: Repeatable::Never, needs_permit: false, stream: true };

    /// A read that is sent once.
    pub(super) const ONCE: Self = Self { repeatable: Repeatable::Never, needs_permit: false, stream: false };

    fn new(
        method: &Method,
        (path, query): (&str, Option<&str>),
        content_type: &[u8],
        no_retry: bool,
    ) -> Self {
        let path = ResourcePath::parse(path);
        let subresource = path.as_ref().and_then(|path| path.subresource);
        let stream = query_flag(query, "watch")
            || query_flag(query, "follow")
            || matches!(subresource, Some("exec" | "attach" | "portforward" | "proxy"));
        if stream {
            return Self::STREAM;
        }
        let is_lease = path.as_ref().is_some_and(|path| path.group == "coordination.k8s.io");
        if no_retry || is_lease {
            return Self::ONCE;
        }
        let repeatable = Repeatable::of(method, content_type, subresource);
        Self { repeatable, needs_permit: true, stream: false }
    }

    /// Watches and other streams have no time limits.
    pub(super) fn limit(self, limit: Duration) -> Option<Duration> {
        (!self.stream).then_some(limit)
    }
}

fn content_type(headers: &HeaderMap) -> &[u8] {
    headers.get(header::CONTENT_TYPE).map_or(&b""[..], header::HeaderValue::as_bytes)
}
