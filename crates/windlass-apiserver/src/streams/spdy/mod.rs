//! SPDY/3.1 for the clients of Kubernetes: a client opens streams, and the server answers.
//!
//! There is no flow control: Go's implementation, which all clients share, has no flow control. A stream
//! without a reader keeps the server from reading the connection after [`connection::STREAM_PIECES`] pieces.

mod connection;
mod frame;
mod headers;

pub(super) use self::connection::{Opened, Stream, open};
pub use self::frame::{Frame, FrameError, FrameReader};
pub(super) use self::frame::{data_head, refusal};
pub use self::headers::{HeaderError, Headers, HeadersReader};
