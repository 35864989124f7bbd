//! The frames of SPDY/3.1 that the streams of a program need, on the side of the client.
//!
//! All headers of the client are sent without compression, in stored blocks of zlib, so that no dictionary is needed. The replies of the
//! container runtime to new streams have no content that matters. There is no flow control: Go's implementation, which all container
//! runtimes use, has none.

/// The length of the head of each frame.
pub(super) const HEAD: usize = 8;

const SYN_STREAM: u16 = 1;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;

/// The bit of a control frame.
const CONTROL: u32 = 1 << 31;

/// The flag of the last frame of a stream.
const FIN: u8 = 1;

/// The head of zlib, without a dictionary.
const ZLIB: [u8; 2] = [0x78, 0x01];

/// An empty stored block. The reader hands out all bytes before the block.
const FLUSH: [u8; 5] = [0, 0, 0, 0xff, 0xff];

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Head {
    /// Bytes of a stream.
    Data { stream: u32, is_last: bool, length: usize },
    /// The stream ends. The body has the number of the stream.
    Reset { length: usize },
    /// A question whether this side lives. The body comes back.
    Ping { length: usize },
    /// A frame that needs no answer.
    Other { length: usize },
}

/// Reads the head of a frame.
pub(super) fn head(bytes: [u8; HEAD]) -> Head {
    let [first @ .., flags, high, middle, low] = bytes;
    let first = u32::from_be_bytes(first);
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    if first & CONTROL == 0 {
        return Head::Data { stream: first, is_last: flags & FIN != 0, length };
    }
    // The upper half is the version.
    match first as u16 {
        RST_STREAM => Head::Reset { length },
        PING => Head::Ping { length },
        _ => Head::Other { length },
    }
}

/// Returns the frames that open streams with the values of the header `streamtype`. The numbers of the streams are 1, 3, 5, ….
pub(super) fn open(kinds: &[&str]) -> Vec<u8> {
    let mut frames = Vec::new();
    for (kind, stream) in kinds.iter().zip((1_u32..).step_by(2)) {
        // One stream of zlib has the headers of all frames.
        let mut block = if stream == 1 { ZLIB.to_vec() } else { Vec::new() };
        let headers = headers(kind);
        let length = headers.len() as u16;
        block.push(0);
        block.extend_from_slice(&length.to_le_bytes());
        block.extend_from_slice(&(!length).to_le_bytes());
        block.extend_from_slice(&headers);
        block.extend_from_slice(&FLUSH);
        control(&mut frames, SYN_STREAM, 10 + block.len());
        frames.extend_from_slice(&stream.to_be_bytes());
        // No stream above this stream, and no priority.
        frames.extend_from_slice(&[0; 6]);
        frames.extend_from_slice(&block);
    }
    frames
}

fn headers(kind: &str) -> Vec<u8> {
    let mut bytes = 1_u32.to_be_bytes().to_vec();
    for text in ["streamtype", kind] {
        bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    bytes
}

/// Returns a frame with bytes of a stream. `bytes` are at most 16 MiB.
pub(super) fn data(stream: u32, bytes: &[u8]) -> Vec<u8> {
    let mut frame = stream.to_be_bytes().to_vec();
    frame.extend_from_slice(&(bytes.len() as u32 & 0x00ff_ffff).to_be_bytes());
    frame.extend_from_slice(bytes);
    frame
}

/// Returns the frame that ends a stream of this side.
pub(super) fn last(stream: u32) -> Vec<u8> {
    let mut frame = data(stream, &[]);
    frame[4] = FIN;
    frame
}

/// Returns the answer to a ping.
pub(super) fn pong(body: [u8; 4]) -> Vec<u8> {
    let mut frame = Vec::new();
    control(&mut frame, PING, body.len());
    frame.extend_from_slice(&body);
    frame
}

fn control(frames: &mut Vec<u8>, kind: u16, length: usize) {
    frames.extend_from_slice(&[0x80, 3]);
    frames.extend_from_slice(&kind.to_be_bytes());
    frames.extend_from_slice(&(length as u32 & 0x00ff_ffff).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_of(frame: &[u8]) -> Head {
        head(frame[..HEAD].try_into().unwrap())
    }

    #[test]
    fn frames_have_their_stream_and_length() {
        let frame = data(5, b"abc");
        assert_eq!(frame, [0, 0, 0, 5, 0, 0, 0, 3, b'a', b'b', b'c']);
        assert_eq!(head_of(&frame), Head::Data { stream: 5, is_last: false, length: 3 });
        assert_eq!(head_of(&last(5)), Head::Data { stream: 5, is_last: true, length: 0 });
        assert_eq!(head_of(&pong([1, 2, 3, 4])), Head::Ping { length: 4 });
        assert_eq!(head([0x80, 3, 0, 3, 0, 0, 0, 8]), Head::Reset { length: 8 });
        assert_eq!(head([0x80, 3, 0, 2, 0, 0, 1, 0]), Head::Other { length: 256 });
    }

    #[test]
    fn the_headers_of_new_streams_are_one_stream_of_zlib() {
        let frames = open(&["error", "stdin"]);
        let (mut rest, mut compressed, mut streams) = (frames.as_slice(), Vec::new(), Vec::new());
        while !rest.is_empty() {
            let Head::Other { length } = head_of(rest) else { panic!("no control frame") };
            streams.push(rest[HEAD + 3]);
            compressed.extend_from_slice(&rest[HEAD + 10..HEAD + length]);
            rest = &rest[HEAD + length..];
        }
        assert_eq!(streams, [1, 3]);
        assert_eq!(compressed[..2], ZLIB);
        let mut plain = Vec::new();
        let mut blocks = &compressed[2..];
        while !blocks.is_empty() {
            let length = usize::from(u16::from_le_bytes([blocks[1], blocks[2]]));
            assert_eq!(u16::from_le_bytes([blocks[3], blocks[4]]), !(length as u16));
            plain.extend_from_slice(&blocks[5..5 + length]);
            blocks = &blocks[5 + length..];
        }
        let text =
            b"\0\0\0\x01\0\0\0\x0astreamtype\0\0\0\x05error\0\0\0\x01\0\0\0\x0astreamtype\0\0\0\x05stdin";
        assert_eq!(plain, text);
    }
}
