//! Compression with a dictionary that is trained on the kind.

use std::{fmt, io};

use zstd::{
    bulk::{Compressor, Decompressor},
    dict::{DecoderDictionary, EncoderDictionary, from_samples},
};

/// What the objects of a kind have in common, and the contexts that compress and decompress with it.
pub struct Dictionary {
    encoder: EncoderDictionary<'static>,
    decoder: DecoderDictionary<'static>,
    size: usize,
}

impl Dictionary {
    /// Trains a dictionary of at most `size` bytes on samples of the kind.
    ///
    /// # Errors
    /// There are too few samples, or they have nothing in common.
    pub fn train(samples: &[impl AsRef<[u8]>], size: usize) -> io::Result<Self> {
        Self::from_bytes(&from_samples(samples, size)?)
    }

    /// A dictionary from its bytes: trained ones, or any text that is typical of the kind.
    pub fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        const LEVEL: i32 = 1;
        Ok(Self {
            encoder: EncoderDictionary::try_copy(bytes, LEVEL)?,
            decoder: DecoderDictionary::try_copy(bytes)?,
            size: bytes.len(),
        })
    }

    /// Length of the dictionary in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Compresses.
    pub(super) fn compress(&self, json: &[u8]) -> io::Result<Vec<u8>> {
        let mut compressor = Compressor::with_prepared_dictionary(&self.encoder)?;
        compressor.compress(json)
    }

    /// Restores what [`Self::compress`] made of `length` bytes.
    pub(super) fn decompress(&self, stored: &[u8], length: usize) -> Vec<u8> {
        let restored = Decompressor::with_prepared_dictionary(&self.decoder)
            .and_then(|mut decompressor| decompressor.decompress(stored, length));
        // The bytes were made by `compress` with this very dictionary and have not left memory since.
        restored.unwrap_or_default()
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("size", &self.size).finish_non_exhaustive()
    }
}
