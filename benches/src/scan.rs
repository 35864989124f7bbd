//! The throughput of the scan, in bytes of JSON a second of processor time of this thread.

use crate::cell::Cell;
use crate::corpus::{Corpus, Kind, Objects, Source};
use crate::process;
use std::hint::black_box;
use windlass_cache::{RawObject, ScanOptions, Scanner};

/// The number of passes. The best pass counts, because other processes disturb the other passes.
const PASSES: usize = 5;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[arg(long)]
    objects: usize,
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// `uniform`, `diverse` or a file of JSON lines
    #[arg(long, default_value = "uniform")]
    corpus: Source,
}

pub(crate) fn run(args: &Args) -> Cell {
    let corpus = Corpus::new(&args.corpus, Kind::Pods, args.objects, 0, args.seed).objects;
    let mut scanner = Scanner::new(&ScanOptions::default());
    let index = best(&corpus, |json| {
        black_box(scanner.scan(json).expect("a pod"));
    });
    let (copy, alone) = objects_of(&corpus, &ScanOptions::default());
    // As in an informer: data that the objects share is kept once.
    let (shared, shared_alone) =
        objects_of(&corpus, &ScanOptions { one_kind: true, ..ScanOptions::default() });
    Cell::default()
        .with("index", index)
        .with("copy", copy)
        .with("bytes_per_object", alone)
        .with("shared", shared)
        .with("shared_bytes_per_object", shared_alone)
}

/// Returns the bytes of JSON a second that are scanned to objects, and the memory of an object in bytes.
fn objects_of(corpus: &Objects, options: &ScanOptions) -> (f64, f64) {
    let mut scanner = Scanner::new(options);
    let rate = best(corpus, |json| {
        black_box(scanner.object(json).expect("a pod"));
    });
    let each = |number| scanner.object(corpus.object(number)).as_ref().map_or(0, RawObject::memory);
    let memory: usize = (0..corpus.len()).map(each).sum();
    (rate, memory as f64 / corpus.len() as f64)
}

/// Returns the bytes a second of the best pass.
fn best(corpus: &Objects, mut work: impl FnMut(&[u8])) -> f64 {
    let passes = (0..PASSES).map(|_| {
        let began = process::processor_of_thread();
        (0..corpus.len()).for_each(|number| work(corpus.object(number)));
        corpus.bytes() as f64 / (process::processor_of_thread() - began)
    });
    passes.fold(0.0, f64::max)
}
