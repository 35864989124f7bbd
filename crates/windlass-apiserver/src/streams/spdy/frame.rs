//! The frames of SPDY/3.1.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::headers::{HeaderError, Headers, HeadersReader};

/// The version in control frames. SPDY/3.1 has the frames of version 3.
const VERSION: u16 = 3;
/// The largest control frame, without the head. Real clients send a few hundred bytes.
const MAX_CONTROL: usize = 64 << 10;
/// The largest piece of a data frame that is handed on at once.
const MAX_PIECE: usize = 32 << 10;
/// The length up to which a piece is copied, because a shared piece keeps the whole buffer.
const MIN_SHARED: usize = 4 << 10;

/// The bytes before the payload of every frame.
pub(super) const HEAD: usize = 8;

const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const FLAG_FIN: u8 = 1;

/// The status of a reset: the stream is not known or does not take part in the protocol.
pub(in crate::streams) const PROTOCOL_ERROR: u32 = 1;
/// The status of a reset: the stream is refused before any processing.
const REFUSED_STREAM: u32 = 3;

/// A frame of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A new stream.
    SynStream {
        /// The number of the stream.
        id: u32,
        /// True if the client sends no data.
        fin: bool,
        /// The headers.
        headers: Headers,
    },
    /// A piece of a data frame.
    Data {
        /// The number of the stream.
        id: u32,
        /// True if this is the client's last piece.
        fin: bool,
        /// The bytes. May be empty.
        bytes: Bytes,
    },
    /// The client takes and sends no more data.
    RstStream {
        /// The number of the stream.
        id: u32,
    },
    /// A request for an equal frame.
    Ping(u32),
    /// The client opens no more streams.
    GoAway,
}

/// Why a connection cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The frame has another version.
    #[error("a control frame has version {0}, not {VERSION}")]
    Version(u16),
    /// The frame is too long.
    #[error("a control frame has {0} bytes, of at most {MAX_CONTROL}")]
    TooLong(usize),
    /// The frame is too short for its kind.
    #[error("a control frame of type {0} is too short")]
    TooShort(u16),
    /// The headers cannot be read.
    #[error(transparent)]
    Headers(#[from] HeaderError),
}

/// Cuts bytes into frames. The bytes may come in pieces of any size.
#[derive(Debug, Default)]
pub struct FrameReader {
    headers: HeadersReader,
    /// The rest of a data frame.
    data: Option<Rest>,
}

#[derive(Debug)]
struct Rest {
    id: u32,
    fin: bool,
    left: usize,
}

impl FrameReader {
    /// Takes the next frame out of `buffer`; `None` if more bytes are needed.
    ///
    /// # Errors
    /// The bytes are not SPDY/3.1. The connection cannot continue, because all headers are a single
    /// compressed stream.
    pub fn next(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        loop {
            if let Some(rest) = self.data.take() {
                return Ok(self.piece(rest, buffer));
            }
            let Some(head) = buffer.first_chunk::<HEAD>() else { return Ok(None) };
            let first = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
            let (flags, length) = (head[4], u32::from_be_bytes([0, head[5], head[6], head[7]]) as usize);
            if first & 0x8000_0000 == 0 {
                buffer.advance(HEAD);
                self.data = Some(Rest { id: first, fin: flags & FLAG_FIN != 0, left: length });
                continue;
            }
            let (version, kind) = ((first >> 16 & 0x7fff) as u16, (first & 0xffff) as u16);
            if version != VERSION {
                return Err(FrameError::Version(version));
            }
            if length > MAX_CONTROL {
                return Err(FrameError::TooLong(length));
            }
            if buffer.len() < HEAD + length {
                return Ok(None);
            }
            let payload = buffer.split_to(HEAD + length).freeze().slice(HEAD..);
            if let Some(frame) = self.control(kind, flags, payload)? {
                return Ok(Some(frame));
            }
        }
    }

    /// Takes the available part of a data frame. An empty frame is a single piece.
    fn piece(&mut self, mut rest: Rest, buffer: &mut BytesMut) -> Option<Frame> {
        let size = rest.left.min(buffer.len()).min(MAX_PIECE);
        if size == 0 && rest.left > 0 {
            self.data = Some(rest);
            return None;
        }
        rest.left -= size;
        let bytes = buffer.split_to(size);
        let bytes = if size < MIN_SHARED { Bytes::copy_from_slice(&bytes) } else { bytes.freeze() };
        let (id, fin) = (rest.id, rest.fin && rest.left == 0);
        if rest.left > 0 {
            self.data = Some(rest);
        }
        Some(Frame::Data { id, fin, bytes })
    }

    /// Parses a control frame; `None` for a frame without a meaning for this server.
    ///
    /// The settings and the windows of clients are ignored, as by every Go program: the only peers of this
    /// protocol send no window updates, and a server that waits for window updates stalls.
    fn control(&mut self, kind: u16, flags: u8, mut payload: Bytes) -> Result<Option<Frame>, FrameError> {
        let mut number = || payload.try_get_u32().map_err(|_| FrameError::TooShort(kind));
        Ok(match kind {
            SYN_STREAM => {
                let (id, _associated) = (number()? & 0x7fff_ffff, number()?);
                // The priority and a slot.
                payload.try_get_u16().map_err(|_| FrameError::TooShort(kind))?;
                let headers = self.headers.read(&payload)?;
                Some(Frame::SynStream { id, fin: flags & FLAG_FIN != 0, headers })
            }
            SYN_REPLY | 8 => {
                // A client answers no stream of the server, but the headers of an answer are a part of the
                // compressed stream.
                number()?;
                self.headers.read(&payload)?;
                None
            }
            RST_STREAM => Some(Frame::RstStream { id: number()? & 0x7fff_ffff }),
            PING => Some(Frame::Ping(number()?)),
            GOAWAY => Some(Frame::GoAway),
            _ => None,
        })
    }
}

fn control(kind: u16, length: usize) -> BytesMut {
    let mut frame = BytesMut::with_capacity(HEAD + length);
    frame.put_u16(0x8000 | VERSION);
    frame.put_u16(kind);
    frame.put_u32(length as u32);
    frame
}

/// Writes the acceptance of a stream. `headers` are a block without names.
pub(super) fn syn_reply(id: u32, headers: &[u8]) -> Bytes {
    let mut frame = control(SYN_REPLY, 4 + headers.len());
    frame.put_u32(id);
    frame.put_slice(headers);
    frame.freeze()
}

/// Writes the end of a stream in both directions.
pub(super) fn reset(id: u32, status: u32) -> Bytes {
    let mut frame = control(RST_STREAM, 8);
    frame.put_u32(id);
    frame.put_u32(status);
    frame.freeze()
}

/// Writes a frame that refuses a stream.
pub(in crate::streams) fn refusal(id: u32) -> Bytes {
    reset(id, REFUSED_STREAM)
}

/// Writes the answer to a ping.
pub(super) fn ping(number: u32) -> Bytes {
    let mut frame = control(PING, 4);
    frame.put_u32(number);
    frame.freeze()
}

/// Writes the end of the connection.
pub(super) fn go_away(last: u32) -> Bytes {
    let mut frame = control(GOAWAY, 8);
    frame.put_u32(last);
    frame.put_u32(0);
    frame.freeze()
}

/// Writes the head of a data frame.
pub(in crate::streams) fn data_head(id: u32, fin: bool, length: usize) -> [u8; HEAD] {
    let flags = if fin { FLAG_FIN } else { 0 };
    let (id, length) = (id.to_be_bytes(), (length as u32).to_be_bytes());
    [id[0], id[1], id[2], id[3], flags, length[1], length[2], length[3]]
}
