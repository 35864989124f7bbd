//! The throughput of the scan, in bytes of JSON a second of processor time of this thread.

use crate::cell::Cell;
use crate::corpus::{Corpus, Kind};
use crate::process;
use std::hint::black_box;
use windlass_cache::{RawObject, ScanOptions, Scanner};

/// The number of passes. The best one counts, because others were disturbed by other processes.
const PASSES: usize = 5;

pub(crate) fn run(objects: usize) -> Cell {
    let corpus = Corpus::new(Kind::Pods, objects, 42);
    let mut scanner = Scanner::new(&ScanOptions::default());
    let index = best(&corpus, |json| {
        black_box(scanner.scan(json).expect("a pod"));
    });
    let (copy, alone) = objects_of(&corpus, &ScanOptions::default());
    // As in an informer: data that the objects share is kept once.
    let (shaped, shaped_alone) =
        objects_of(&corpus, &ScanOptions { one_kind: true, ..ScanOptions::default() });
    Cell::default()
        .with("index", index)
        .with("copy", copy)
        .with("bytes_per_object", alone)
        .with("shaped", shaped)
        .with("shaped_bytes_per_object", shaped_alone)
}

/// Returns the bytes of JSON a second that are scanned to objects, and the memory of an object in bytes.
fn objects_of(corpus: &Corpus, options: &ScanOptions) -> (f64, f64) {
    let mut scanner = Scanner::new(options);
    let rate = best(corpus, |json| {
        black_box(scanner.object(json).expect("a pod"));
    });
    let each = |number| scanner.object(corpus.object(number)).as_ref().map_or(0, RawObject::memory);
    let memory: usize = (0..corpus.len()).map(each).sum();
    (rate, memory as f64 / corpus.len() as f64)
}

/// Returns the bytes a second of the best pass.
fn best(corpus: &Corpus, mut work: impl FnMut(&[u8])) -> f64 {
    let passes = (0..PASSES).map(|_| {
        let began = process::processor_of_thread();
        (0..corpus.len()).for_each(|number| work(corpus.object(number)));
        corpus.bytes() as f64 / (process::processor_of_thread() - began)
    });
    passes.fold(0.0, f64::max)
}
