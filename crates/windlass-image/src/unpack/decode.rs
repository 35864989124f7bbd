//! The bytes of a layer without compression: counted, limited and hashed.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use super::Limits;
use crate::{Digest, Error, Hasher, Result};

/// The size from which the ratio of a layer counts, in bytes.
const RATIO_FROM: u64 = 64 << 20;

/// Reads a layer without its compression.
pub(super) struct LayerReader {
    source: Box<dyn Read>,
    compressed: Rc<Cell<u64>>,
    hasher: Hasher,
    size: u64,
    limits: Limits,
}

impl LayerReader {
    /// Reads a layer with gzip, zstd or no compression, which the first bytes tell.
    pub(super) fn new(file: File, limits: &Limits) -> Result<Self> {
        let compressed = Rc::new(Cell::new(0));
        let mut file = BufReader::with_capacity(1 << 16, Counter { file, count: Rc::clone(&compressed) });
        let start = io::BufRead::fill_buf(&mut file)
            .map_err(|error| Error::invalid(format!("cannot be read: {error}")))?;
        let source: Box<dyn Read> = match start {
            [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(file)),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(
                zstd::stream::read::Decoder::with_buffer(file)
                    .map_err(|error| Error::invalid(format!("cannot be decompressed: {error}")))?,
            ),
            _ => Box::new(file),
        };
        Ok(Self { source, compressed, hasher: Hasher::new(), size: 0, limits: *limits })
    }

    /// Reads the bytes after the end of the archive. Returns the digest and the size of all bytes.
    pub(super) fn finish(mut self) -> Result<(Digest, u64)> {
        io::copy(&mut self, &mut io::sink()).map_err(Error::invalid)?;
        Ok((self.hasher.finish(), self.size))
    }

    fn check(&self) -> io::Result<()> {
        if self.size > self.limits.bytes {
            return Err(io::Error::other(format!("the image is larger than {} bytes", self.limits.bytes)));
        }
        let most = self.compressed.get().saturating_mul(self.limits.ratio);
        if self.size > RATIO_FROM && self.size > most {
            return Err(io::Error::other(format!(
                "the layer is more than {} times larger than its compressed form",
                self.limits.ratio
            )));
        }
        Ok(())
    }
}

impl Read for LayerReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        self.size += read as u64;
        self.check()?;
        Ok(read)
    }
}

/// Counts the bytes that are read from a file.
struct Counter {
    file: File,
    count: Rc<Cell<u64>>,
}

impl Read for Counter {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}
