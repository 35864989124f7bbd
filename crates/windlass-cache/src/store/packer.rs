//! When and with what objects are compressed.

use std::sync::Arc;

use crate::{Dictionary, RawObject};

/// Compresses objects once it has seen enough of them to train a dictionary.
#[derive(Debug)]
pub(super) struct Packer {
    samples: Vec<RawObject>,
    /// Bytes of the samples.
    sampled: usize,
    state: State,
    /// What became of recent objects, to notice when the kind has changed.
    stored: usize,
    original: usize,
    /// The ratio of the first objects after training, in percent.
    at_first: usize,
}

#[derive(Debug)]
enum State {
    Sampling,
    /// With a dictionary that nobody has been told of.
    Trained(Arc<Dictionary>),
    Packing(Arc<Dictionary>),
}

/// Samples enough to see what the objects have in common.
const SAMPLES: usize = 512;
/// Large objects need fewer.
const SAMPLE_BYTES: usize = 2 << 20;
const DICTIONARY: usize = 64 << 10;
/// How much is packed between two looks at the ratio.
const REVIEW: usize = 32 << 20;

impl Default for Packer {
    fn default() -> Self {
        Self { samples: Vec::new(), sampled: 0, state: State::Sampling, stored: 0, original: 0, at_first: 0 }
    }
}

impl Packer {
    pub(super) fn pack(&mut self, object: RawObject) -> RawObject {
        if object.is_shaped() || object.is_compressed() {
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
        // Objects that have nothing in common stay as they are; the next ones are looked at.
        if let Ok(dictionary) = Dictionary::train(&samples, DICTIONARY.min(total(&samples) / 8)) {
            self.state = State::Trained(Arc::new(dictionary));
        }
    }

    /// Trains anew when objects have become a third larger than they were at first.
    fn review(&mut self) {
        let ratio = self.stored * 100 / self.original.max(1);
        (self.stored, self.original) = (0, 0);
        if self.at_first == 0 {
            self.at_first = ratio;
        } else if ratio > self.at_first + self.at_first / 3 {
            self.at_first = 0;
            self.state = State::Sampling;
        }
    }

    /// The dictionary, the first time it is asked for after training.
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
