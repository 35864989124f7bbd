//! The streams of pods: `exec`, `attach` and `port-forward`, over WebSocket and over SPDY/3.1.
//!
//! | request | protocol of the connection | protocol of the streams |
//! |---|---|---|
//! | `exec`, `attach` | WebSocket | a byte before each message names the channel ([`channel`]) |
//! | `exec`, `attach` | SPDY/3.1 | a stream for each of stdin, stdout, stderr, error and resize |
//! | `portforward` | WebSocket | two channels for each port |
//! | `portforward` | SPDY/3.1, or SPDY/3.1 inside of WebSocket messages ([`tunnel`]) | two streams for each connection |
//!
//! [`handshake`] chooses the protocol. [`remote`] connects a client's streams with the
//! [`Session`](crate::nodes::Session) of a command, and [`forward`] with ports. A transport ([`socket`],
//! [`spdy`]) reads and writes at the same time, in one task: a command that waits for a reader of the output
//! never keeps the server from reading.
//!
//! Only pieces in transit are kept: the pieces of a stream go through bounded channels, and a peer that does
//! not read stops the other peer.

mod channel;
mod conversation;
mod forward;
mod handshake;
mod outlet;
mod remote;
mod resize;
mod socket;
mod spdy;
mod status;
mod tunnel;

pub(crate) use self::forward::{Ports, run as forward};
pub(crate) use self::handshake::{Forward, port_forward, refuse, remote};
pub(crate) use self::remote::{Program, run};

/// The parsers of bytes from clients, for fuzzing.
pub mod parsers {
    pub use super::channel::{Received, Version};
    pub use super::resize::Resizes;
    pub use super::spdy::{Frame, FrameError, FrameReader, HeaderError, Headers, HeadersReader};
}
