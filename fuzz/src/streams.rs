//! Targets for the parsers of streams: the input of clients of `exec` and `port-forward`.

use bytes::{Bytes, BytesMut};
use windlass_apiserver::parsers::{Frame, FrameError, FrameReader, Resizes, Version};

/// The versions of the channels of a WebSocket.
const VERSIONS: [&str; 5] =
    ["", "v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "base64.channel.k8s.io"];

/// Frames of SPDY do not depend on the split of the bytes.
pub(crate) fn spdy_frames(data: &[u8]) {
    let at_once = read(std::iter::once(data));
    let one_by_one = read(data.chunks(1));
    assert_eq!(at_once, one_by_one);
}

/// Reads frames from parts. Pieces of a data frame are joined.
fn read<'a>(parts: impl Iterator<Item = &'a [u8]>) -> (Vec<Frame>, Option<FrameError>) {
    let (mut reader, mut buffer, mut frames) = (FrameReader::default(), BytesMut::new(), Vec::new());
    for part in parts {
        buffer.extend_from_slice(part);
        loop {
            match reader.next(&mut buffer) {
                Ok(Some(frame)) => add(&mut frames, frame),
                Ok(None) => break,
                Err(error) => return (frames, Some(error)),
            }
        }
    }
    (frames, None)
}

fn add(frames: &mut Vec<Frame>, frame: Frame) {
    if let (
        Some(Frame::Data { id, fin, bytes }),
        Frame::Data { id: next_id, fin: next_fin, bytes: next_bytes },
    ) = (frames.last_mut(), &frame)
        && id == next_id
        && !*fin
    {
        *bytes = [&**bytes, next_bytes].concat().into();
        *fin = *next_fin;
        return;
    }
    frames.push(frame);
}

/// Every message has a meaning, and the last size of a terminal does not depend on where the bytes are cut.
pub(crate) fn channels(data: &[u8]) {
    for version in VERSIONS.into_iter().filter_map(Version::named) {
        let _ = version.read(Bytes::copy_from_slice(data));
    }
    let at_once = Resizes::default().push(data);
    let mut sizes = Resizes::default();
    let one_by_one = data.chunks(1).filter_map(|byte| sizes.push(byte)).last();
    if data.len() < 1024 {
        assert_eq!(at_once, one_by_one);
    }
}
