//! Compresses objects with a dictionary that is trained on the first objects.

use std::io;

use memchr::memmem;

use crate::{Dictionary, RawObject, object::Compressor};

/// Compresses objects after enough samples to train a dictionary.
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
    /// The compression ratio right after training, in percent. Zero before the training.
    first_ratio: usize,
}

#[derive(Debug)]
enum State {
    Sampling,
    /// A trained dictionary that no object uses yet.
    Trained(Compressor),
    Packing(Compressor),
}

/// The number of samples to train from.
const SAMPLES: usize = 512;
/// Fewer samples are enough if the samples have this many bytes.
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
        if object.is_compressed() {
            return object;
        }
        let (State::Trained(compressor) | State::Packing(compressor)) = &self.state else {
            self.sample(&object);
            return object;
        };
        let packed = compress(&object, compressor).unwrap_or_else(|| object.clone());
        self.stored += packed.memory();
        self.original += object.memory();
        if self.original > REVIEW {
            self.review();
        }
        packed
    }

    fn sample(&mut self, object: &RawObject) {
        if is_secret(object.stored()) {
            // No sample of a Secret is kept.
            self.samples.clear();
            self.sampled = 0;
            if let Ok(dictionary) = Dictionary::from_bytes(SECRET) {
                self.state = State::Trained(Compressor::new(dictionary));
            }
            return;
        }
        self.samples.push(object.clone());
        self.sampled += object.stored().len();
        if self.samples.len() < SAMPLES && (self.sampled < SAMPLE_BYTES || self.samples.len() < 64) {
            return;
        }
        let samples = std::mem::take(&mut self.samples);
        self.sampled = 0;
        // If the samples have nothing in common, the next objects are sampled.
        if let Ok(dictionary) = train(&samples) {
            self.state = State::Trained(Compressor::new(dictionary));
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

    /// Returns the compressor once after each training.
    pub(super) fn take_trained(&mut self) -> Option<Compressor> {
        let State::Trained(compressor) = &self.state else { return None };
        let compressor = compressor.clone();
        self.state = State::Packing(compressor.clone());
        Some(compressor)
    }
}

/// Fewer bytes are not worth the time.
const SHORTEST: usize = 256;

/// Compresses an object, if that makes the object smaller.
pub(super) fn compress(object: &RawObject, compressor: &Compressor) -> Option<RawObject> {
    if object.stored().len() < SHORTEST {
        return None;
    }
    compressor.compress(object).filter(|compressed| compressed.memory() < object.memory())
}

/// The dictionary for Secrets. A trained dictionary would contain values, and would outlive the Secrets.
const SECRET: &[u8] = br#"Opaque","kubernetes.io/service-account-token","helm.sh/release.v1","kubernetes.io/tls","username":"","password":"","token":"ZXlK","release":"SDRzSUFBQUFBQUFD","tls.key":"LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQpN","tls.crt":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JS","ca.crt":"LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JS"},"type":"Opaque"},"data":{"ownerReferences":[{"apiVersion":"apps/v1","kind":"","name":"","uid":"","controller":true,"blockOwnerDeletion":true}],"annotations":{"labels":{"app.kubernetes.io/managed-by":"Helm","app.kubernetes.io/name":"","app.kubernetes.io/instance":"","creationTimestamp":"2026-0","resourceVersion":"","uid":"","namespace":"{"apiVersion":"v1","kind":"Secret","metadata":{"name":""#;

/// Returns whether the JSON may be of a Secret, or contain the JSON of a Secret in an annotation.
fn is_secret(json: &[u8]) -> bool {
    memmem::find(json, b"\"Secret").is_some()
}

fn train(samples: &[RawObject]) -> io::Result<Dictionary> {
    let samples: Vec<_> = samples.iter().map(RawObject::stored).collect();
    let total: usize = samples.iter().map(|sample| sample.len()).sum();
    Dictionary::train(&samples, DICTIONARY.min(total / 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: usize, value: &str) -> RawObject {
        let json = format!(
            r#"{{"kind":"{kind}","apiVersion":"v1","metadata":{{"name":"o{name}","uid":"u{name}"}},"data":{{"key":"{value}"}}}}"#
        );
        RawObject::from_json(json.as_bytes()).expect("an object")
    }

    #[test]
    #[cfg_attr(miri, ignore = "zstd is no Rust code")]
    fn a_secret_is_no_sample() {
        let mut packer = Packer::default();
        for number in 0..2 * SAMPLES {
            packer.pack(object("Secret", number, "a-value-that-many-secrets-share"));
            assert!(packer.samples.is_empty(), "after {number}");
        }
        let dictionary = packer.take_trained().map(|compressor| compressor.dictionary().size());
        assert_eq!(dictionary, Some(SECRET.len()), "the fixed dictionary");
    }

    /// An annotation of a pod has the JSON of a Secret.
    #[test]
    #[cfg_attr(miri, ignore = "zstd is no Rust code")]
    fn a_secret_in_an_annotation_removes_the_samples() {
        let mut packer = Packer::default();
        for number in 0..SAMPLES / 2 {
            packer.pack(object("Pod", number, "plain"));
        }
        assert_eq!(packer.samples.len(), SAMPLES / 2);
        packer.pack(object("Pod", SAMPLES, r#"{\"kind\":\"Secret\"}"#));
        assert!(packer.samples.is_empty());
        assert_eq!(
            packer.take_trained().map(|compressor| compressor.dictionary().size()),
            Some(SECRET.len())
        );
    }
}
