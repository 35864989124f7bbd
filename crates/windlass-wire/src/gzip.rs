//! Compressed responses.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// The size in bytes from which bodies are compressed for clients that accept gzip.
pub const GZIP_FROM: usize = 128 * 1024;

/// Returns whether a client accepts gzip, from the header `Accept-Encoding`.
pub fn accepts_gzip(accept_encoding: Option<&str>) -> bool {
    accept_encoding.is_some_and(|header| {
        header.split(',').any(|part| part.split(';').next().map(str::trim) == Some("gzip"))
    })
}

/// Compresses a large body if `accept_encoding` names gzip. Returns whether the body is compressed.
pub fn maybe_gzip(accept_encoding: Option<&str>, body: Bytes) -> (Bytes, bool) {
    if !accepts_gzip(accept_encoding) || body.len() < GZIP_FROM {
        return (body, false);
    }
    let pieces = gzip_pieces(std::iter::once(body));
    let mut compressed = Vec::new();
    pieces.for_each(|piece| compressed.extend_from_slice(&piece));
    (compressed.into(), true)
}

/// Compresses a body that comes in pieces, piece by piece.
pub fn gzip_pieces(pieces: impl Iterator<Item = Bytes>) -> impl Iterator<Item = Bytes> {
    let mut encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut pieces = pieces.fuse();
    std::iter::from_fn(move || {
        loop {
            let Some(piece) = pieces.next() else {
                // Writing into memory does not fail.
                return encoder.take()?.finish().ok().map(Bytes::from);
            };
            let out = encoder.as_mut()?;
            out.write_all(&piece).ok()?;
            let ready = std::mem::take(out.get_mut());
            if !ready.is_empty() {
                return Some(ready.into());
            }
        }
    })
}

#[cfg(test)]
mod tests;
