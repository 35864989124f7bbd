//! The outcome of an exchange over HTTP/2.

use h2::RecvStream;
use http::Response;

use crate::{body::ResponseBody, connection::Lease};

/// The outcome of an exchange over HTTP/2.
pub(crate) enum Outcome {
    Answered(Response<ResponseBody>),
    /// The server certainly did not process the request, which may be sent again.
    Unprocessed(h2::Error),
    Failed(h2::Error),
}

impl Outcome {
    pub(crate) fn of(answer: Result<Response<RecvStream>, h2::Error>, lease: Lease) -> Self {
        match answer {
            Ok(response) => Self::Answered(response.map(|stream| ResponseBody::http2(stream, lease))),
            Err(error) if is_unprocessed(&error) => Self::Unprocessed(error),
            Err(error) => Self::Failed(error),
        }
    }
}

/// Returns true if the server certainly did not process the request: the server refused the stream, or said with GOAWAY that the stream is
/// newer than all streams that the server processes (RFC 9113, 8.7).
fn is_unprocessed(error: &h2::Error) -> bool {
    error.is_remote() && (error.is_go_away() || error.reason() == Some(h2::Reason::REFUSED_STREAM))
}
