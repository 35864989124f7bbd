//! Compressed responses.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Bodies from this size on are compressed for clients that say they can take it.
pub const GZIP_FROM: usize = 128 * 1024;

/// Compresses a body where it is large enough and `accept_encoding` names gzip; says whether it did.
pub fn maybe_gzip(accept_encoding: Option<&str>, body: Bytes) -> (Bytes, bool) {
    let accepts = accept_encoding.is_some_and(|header| {
        header.split(',').any(|part| part.split(';').next().map(str::trim) == Some("gzip"))
    });
    if !accepts || body.len() < GZIP_FROM {
        return (body, false);
    }
    let mut encoder = GzEncoder::new(Vec::with_capacity(body.len() / 4), Compression::fast());
    match encoder.write_all(&body).and_then(|()| encoder.finish()) {
        Ok(compressed) => (compressed.into(), true),
        // Writing into memory does not fail; were it to, the plain body is as good.
        Err(_) => (body, false),
    }
}

#[cfg(test)]
mod tests;
