//! Requests with a complete body.

use bytes::Bytes;
use http::{HeaderValue, Method, uri::PathAndQuery};

/// A request with a complete body and few headers. [`HttpClient::send_message`](crate::HttpClient::send_message) borrows the message, so
/// that a caller sends the message again without a copy.
#[derive(Clone, Debug)]
pub struct Message {
    /// The method.
    pub method: Method,
    /// The path and the query, without the path of the server's address.
    pub path: PathAndQuery,
    /// The header `Accept`.
    pub accept: HeaderValue,
    /// The header `Content-Type`; `None` for a request without a body.
    pub content_type: Option<HeaderValue>,
    /// The body.
    pub body: Bytes,
}
