//! SPDY/3.1 as the clients of Kubernetes use it: a client opens streams, the server answers.
//!
//! There is no flow control: Go's implementation, which all of these clients share, has none. A stream whose bytes are not taken keeps
//! the server from reading the connection after [`connection::STREAM_PIECES`] pieces.

mod connection;
mod frame;
mod headers;

pub(super) use self::connection::{Opened, Stream, open};
pub(super) use self::frame::data_head;
pub use self::frame::{Frame, FrameError, FrameReader};
pub use self::headers::{HeaderError, Headers, HeadersReader};
