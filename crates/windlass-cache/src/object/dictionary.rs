//! Compression with a dictionary that is trained on objects of the kind.

use std::{fmt, io};

use parking_lot::Mutex;
use zstd::{
    dict::{DecoderDictionary, EncoderDictionary, from_samples},
    zstd_safe::{CCtx, DCtx, compress_bound, get_error_name},
};

/// A compression dictionary for the objects of a kind, with compression contexts.
pub struct Dictionary {
    encoder: EncoderDictionary<'static>,
    decoder: DecoderDictionary<'static>,
    size: usize,
    /// Idle contexts. A context in use is taken out, so that readers do not wait for each other.
    compressors: Mutex<Vec<CCtx<'static>>>,
    decompressors: Mutex<Vec<DCtx<'static>>>,
}

impl Dictionary {
    /// Trains a dictionary of at most `size` bytes on samples of the kind.
    ///
    /// # Errors
    /// There are too few samples, or the samples have nothing in common.
    pub fn train(samples: &[impl AsRef<[u8]>], size: usize) -> io::Result<Self> {
        Self::from_bytes(&from_samples(samples, size)?)
    }

    /// Creates a dictionary from the bytes of a trained one, or from any text that is typical of the kind.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        const LEVEL: i32 = 1;
        Ok(Self {
            encoder: EncoderDictionary::try_copy(bytes, LEVEL)?,
            decoder: DecoderDictionary::try_copy(bytes)?,
            size: bytes.len(),
            compressors: Mutex::default(),
            decompressors: Mutex::default(),
        })
    }

    /// Returns the length of the dictionary in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the bytes of memory of the dictionary and its idle contexts.
    pub(crate) fn memory(&self) -> usize {
        let compressors: usize = self.compressors.lock().iter().map(CCtx::sizeof).sum();
        let decompressors: usize = self.decompressors.lock().iter().map(DCtx::sizeof).sum();
        self.encoder.as_cdict().sizeof() + self.decoder.as_ddict().sizeof() + compressors + decompressors
    }

    /// Compresses JSON.
    pub(super) fn compress(&self, json: &[u8]) -> io::Result<Vec<u8>> {
        let mut context =
            pooled(&self.compressors).or_else(CCtx::try_create).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut stored = Vec::with_capacity(compress_bound(json.len()));
        let outcome = context.compress_using_cdict(&mut stored, json, self.encoder.as_cdict());
        self.compressors.lock().push(context);
        outcome.map_err(|code| io::Error::other(get_error_name(code)))?;
        Ok(stored)
    }

    /// Decompresses JSON of `length` bytes.
    pub(super) fn decompress(&self, stored: &[u8], length: usize) -> Vec<u8> {
        let mut json = Vec::with_capacity(length);
        let Some(mut context) = pooled(&self.decompressors).or_else(DCtx::try_create) else { return json };
        let outcome = context.decompress_using_ddict(&mut json, stored, self.decoder.as_ddict());
        self.decompressors.lock().push(context);
        if outcome.is_err() {
            // Cannot happen: this dictionary compressed the bytes. Empty JSON makes the decode fail.
            json.clear();
        }
        json
    }
}

fn pooled<T>(pool: &Mutex<Vec<T>>) -> Option<T> {
    pool.lock().pop()
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("size", &self.size).finish_non_exhaustive()
    }
}
