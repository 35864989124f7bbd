//! The header blocks of SPDY/3: a compressed stream for all frames of a direction, with a preset dictionary.

use bytes::Buf;
use flate2::{Decompress, FlushDecompress, Status};

/// The largest block, decompressed, in bytes.
const MAX_BLOCK: usize = 64 << 10;
/// The checksum of the dictionary, in the head of a compressed stream.
const DICTIONARY_ID: u32 = 0xe3c6_a7c2;
/// The bit in the head of a compressed stream that says that a checksum follows.
const HAS_DICTIONARY: u8 = 0x20;

/// The words of the dictionary with a preceding length. [`REST`] follows the last word.
const WORDS: &str = "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow \
    authorization cache-control connection content-base content-encoding content-language content-length content-location \
    content-md5 content-range content-type date etag expect expires from host if-match if-modified-since if-none-match if-range \
    if-unmodified-since last-modified location max-forwards pragma proxy-authenticate proxy-authorization range referer retry-after \
    server te trailer transfer-encoding upgrade user-agent vary via warning www-authenticate method get status 200_OK version \
    HTTP/1.1 url public set-cookie keep-alive origin";

/// The rest of the dictionary.
const REST: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 \
    Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 \
    Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, \
    Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/\
    plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

/// Returns the dictionary of SPDY/3.
fn dictionary() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1423);
    for word in WORDS.split(' ') {
        bytes.extend_from_slice(&(word.len() as u32).to_be_bytes());
        bytes.extend(word.bytes().map(|byte| if byte == b'_' { b' ' } else { byte }));
    }
    bytes.extend_from_slice(REST.as_bytes());
    bytes
}

/// Why a header block cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The compressed stream has a wrong format or a wrong dictionary.
    #[error("the headers are not compressed as SPDY/3 asks for")]
    Compression,
    /// The block is too long.
    #[error("the headers have more than {MAX_BLOCK} bytes")]
    TooLong,
    /// The block is not a list of names and values.
    #[error("the headers are no list of names and values")]
    Malformed,
}

/// The headers of a stream, with names in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Returns the first value of the header `name`. `name` is in lower case.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name)?;
        found.1.split('\0').next()
    }
}

/// Decompresses the header blocks of a direction, in order.
#[derive(Debug, Default)]
pub struct HeadersReader(Option<Decompress>);

impl HeadersReader {
    /// Reads the headers of the next frame.
    ///
    /// # Errors
    /// The block cannot be read. Later blocks cannot be read either.
    pub fn read(&mut self, block: &[u8]) -> Result<Headers, HeaderError> {
        let mut rest = block;
        let inflate = match &mut self.0 {
            Some(inflate) => inflate,
            unknown => {
                rest = after_head(block)?;
                unknown.insert(with_dictionary()?)
            }
        };
        parse(&decompress(inflate, rest)?)
    }
}

/// Checks the head of the compressed stream, and returns the bytes after it.
fn after_head(block: &[u8]) -> Result<&[u8], HeaderError> {
    let ([method, flags], rest) = block.split_first_chunk::<2>().ok_or(HeaderError::Compression)?;
    if method & 0x0f != 8 || u16::from_be_bytes([*method, *flags]) % 31 != 0 {
        return Err(HeaderError::Compression);
    }
    if flags & HAS_DICTIONARY == 0 {
        return Ok(rest);
    }
    let (id, rest) = rest.split_first_chunk::<4>().ok_or(HeaderError::Compression)?;
    if u32::from_be_bytes(*id) == DICTIONARY_ID { Ok(rest) } else { Err(HeaderError::Compression) }
}

/// Makes a decompressor that has seen the dictionary, as a block of bytes that are not compressed. Not every back end of `flate2` can
/// set a dictionary.
fn with_dictionary() -> Result<Decompress, HeaderError> {
    let dictionary = dictionary();
    let length = (dictionary.len() as u16).to_le_bytes();
    let mut block = vec![0, length[0], length[1], !length[0], !length[1]];
    block.extend_from_slice(&dictionary);
    let mut inflate = Decompress::new(false);
    decompress(&mut inflate, &block)?;
    Ok(inflate)
}

fn decompress(inflate: &mut Decompress, mut input: &[u8]) -> Result<Vec<u8>, HeaderError> {
    let mut output = vec![0; 4096];
    let mut length = 0;
    loop {
        let (read, written) = (inflate.total_in(), inflate.total_out());
        let status = inflate
            .decompress(input, &mut output[length..], FlushDecompress::Sync)
            .map_err(|_| HeaderError::Compression)?;
        input = input.get((inflate.total_in() - read) as usize..).unwrap_or_default();
        let added = (inflate.total_out() - written) as usize;
        length += added;
        let is_full = length == output.len();
        if status == Status::StreamEnd || (input.is_empty() && !is_full) || (added == 0 && !is_full) {
            output.truncate(length);
            return Ok(output);
        }
        if is_full {
            if length >= MAX_BLOCK {
                return Err(HeaderError::TooLong);
            }
            output.resize(length * 2, 0);
        }
    }
}

fn parse(mut block: &[u8]) -> Result<Headers, HeaderError> {
    let count = block.try_get_u32().map_err(|_| HeaderError::Malformed)?;
    let mut headers = Vec::new();
    for _ in 0..count {
        let (name, value) = (text(&mut block)?, text(&mut block)?);
        headers.push((name.to_ascii_lowercase(), value));
    }
    Ok(Headers(headers))
}

fn text(block: &mut &[u8]) -> Result<String, HeaderError> {
    let length = block.try_get_u32().map_err(|_| HeaderError::Malformed)? as usize;
    let (text, rest) = block.split_at_checked(length).ok_or(HeaderError::Malformed)?;
    *block = rest;
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// The header block without headers, for all replies of a connection. The block is not compressed, and the
/// bytes are therefore constant.
#[derive(Debug, Default)]
pub(super) struct NoHeaders {
    is_begun: bool,
}

impl NoHeaders {
    /// Returns the next block of the compressed stream.
    pub(super) fn next(&mut self) -> &'static [u8] {
        /// The head of a compressed stream, a block with a list of no headers, and an empty block, at which a reader stops.
        const FIRST: &[u8] = &[0x78, 0x01, 0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        let is_begun = std::mem::replace(&mut self.is_begun, true);
        if is_begun { &FIRST[2..] } else { FIRST }
    }
}

#[cfg(test)]
mod tests {
    use flate2::{Compress, Compression, FlushCompress};

    use super::*;

    fn adler32(bytes: &[u8]) -> u32 {
        let (mut low, mut high) = (1_u32, 0_u32);
        for byte in bytes {
            low = (low + u32::from(*byte)) % 65_521;
            high = (high + low) % 65_521;
        }
        high << 16 | low
    }

    fn block(headers: &[(&str, &str)]) -> Vec<u8> {
        let mut block = (headers.len() as u32).to_be_bytes().to_vec();
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            block.extend_from_slice(&(text.len() as u32).to_be_bytes());
            block.extend_from_slice(text.as_bytes());
        }
        block
    }

    fn compressed(deflate: &mut Compress, block: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(block.len() + 1024);
        deflate.compress_vec(block, &mut out, FlushCompress::Sync).unwrap();
        out
    }

    #[test]
    fn the_dictionary_is_that_of_the_protocol() {
        let dictionary = dictionary();
        assert_eq!((dictionary.len(), adler32(&dictionary)), (1423, DICTIONARY_ID));
    }

    #[test]
    fn blocks_are_one_compressed_stream() {
        let mut deflate = Compress::new(Compression::best(), true);
        let mut reader = HeadersReader::default();
        for number in ["1", "2", "3"] {
            let block = block(&[("streamType", "data"), ("requestID", number)]);
            let headers = reader.read(&compressed(&mut deflate, &block)).unwrap();
            assert_eq!(headers.get("streamtype"), Some("data"));
            assert_eq!(headers.get("requestid"), Some(number));
        }
    }

    #[test]
    fn a_block_may_refer_to_the_dictionary() {
        // Written by zlib with the dictionary of the protocol.
        let block = [
            0x78, 0xf9, 0xe3, 0xc6, 0xa7, 0xc2, 0x02, 0xa6, 0x23, 0x46, 0x2c, 0x85, 0x09, 0x17, 0xc2, 0x15,
            0x00, 0x00, 0x00, 0x00, 0xff, 0xff,
        ];
        let headers = HeadersReader::default().read(&block).unwrap();
        assert_eq!(headers.get("content-type"), Some("text/plain"));
        let mut wrong = block;
        wrong[5] = 0;
        assert_eq!(HeadersReader::default().read(&wrong), Err(HeaderError::Compression));
    }

    #[test]
    fn a_long_block_is_refused() {
        let mut deflate = Compress::new(Compression::best(), true);
        let value = "x".repeat(MAX_BLOCK);
        let bomb = compressed(&mut deflate, &block(&[("a", &value)]));
        assert!(bomb.len() < 1024);
        assert_eq!(HeadersReader::default().read(&bomb), Err(HeaderError::TooLong));
    }

    #[test]
    fn a_list_may_not_promise_more_than_it_has() {
        for list in [&[0, 0, 0][..], &[0xff; 4], &[0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]] {
            assert_eq!(parse(list), Err(HeaderError::Malformed));
        }
    }

    #[test]
    fn replies_have_no_headers() {
        let (mut replies, mut reader) = (NoHeaders::default(), HeadersReader::default());
        for _ in 0..3 {
            assert_eq!(reader.read(replies.next()), Ok(Headers::default()));
        }
    }
}
