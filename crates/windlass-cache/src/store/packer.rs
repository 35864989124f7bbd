//! Compresses objects with a dictionary that is trained on the first ones.

use std::sync::Arc;

use crate::{Dictionary, RawObject};

/// Compresses objects once it has seen enough samples to train a dictionary.
#[derive(Debug)]
pub(super) struct Packer {
    samples: Vec<RawObject>,
    /// Bytes of the samples.
    sampled: usize,
    state: State,
    /// The compressed bytes of recent objects, to notice when the dictionary no longer fits.
    stored: usize,
    /// The bytes of the same objects before compression.
    original: usize,
    /// The compression ratio right after training, in percent. Zero until it is known.
    first_ratio: usize,
}

#[derive(Debug)]
enum State {
    Sampling,
    /// A trained dictionary that no object uses yet.
    Trained(Arc<Dictionary>),
    Packing(Arc<Dictionary>),
}

/// The number of samples to train from.
const SAMPLES: usize = 512;
/// Fewer samples are enough when they have this many bytes.
const SAMPLE_BYTES: usize = 2 << 20;
const DICTIONARY: usize = 64 << 10;
/// The ratio is checked each time this many bytes have been compressed.
const REVIEW: usize = 32 << 20;

impl Default for Packer {
    fn default() -> Self {
        Self {
            samples: Vec::new(),
            sampled: 0,
            state: State::Sampling,
            stored: 0,
            original: 0,
            first_ratio: 0,
        }
    }
}

impl Packer {
    pub(super) fn pack(&mut self, object: RawObject) -> RawObject {
        if object.has_base() || object.is_compressed() {
            return object;
        }
        let (State::Trained(dictionary) | State::Packing(dictionary)) = &self.state else {
            self.sample(&object);
            return object;
        };
        let packed = object.compress(dictionary).unwrap_or_else(|| object.clone());
        self.stored += packed.memory();
        self.original += object.memory();
        if self.original > REVIEW {
            self.review();
        }
        packed
    }

    fn sample(&mut self, object: &RawObject) {
        self.samples.push(object.clone());
        self.sampled += object.json_length();
        if self.samples.len() < SAMPLES && (self.sampled < SAMPLE_BYTES || self.samples.len() < 64) {
            return;
        }
        let samples: Vec<_> = self.samples.drain(..).map(|sample| sample.json().into_owned()).collect();
        self.sampled = 0;
        // If the samples have nothing in common, the next objects are sampled.
        if let Ok(dictionary) = Dictionary::train(&samples, DICTIONARY.min(total(&samples) / 8)) {
            self.state = State::Trained(Arc::new(dictionary));
        }
    }

    /// Trains again when the ratio is a third worse than right after training.
    fn review(&mut self) {
        let ratio = self.stored * 100 / self.original.max(1);
        (self.stored, self.original) = (0, 0);
        if self.first_ratio == 0 {
            self.first_ratio = ratio;
        } else if ratio > self.first_ratio + self.first_ratio / 3 {
            self.first_ratio = 0;
            self.state = State::Sampling;
        }
    }

    /// Returns the dictionary once after each training.
    pub(super) fn take_trained(&mut self) -> Option<Arc<Dictionary>> {
        let State::Trained(dictionary) = &self.state else { return None };
        let dictionary = dictionary.clone();
        self.state = State::Packing(dictionary.clone());
        Some(dictionary)
    }
}

fn total(samples: &[Vec<u8>]) -> usize {
    samples.iter().map(Vec::len).sum()
}
