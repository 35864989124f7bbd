//! Runs every target on the target's seeds and on mutations of the seeds. The mutations are the same in every
//! run.

use std::panic::catch_unwind;
use std::path::Path;
use std::{fs, io};

use windlass_fuzz::TARGETS;

/// The number of mutations of each seed.
const MUTATIONS: u64 = 400;

#[test]
fn targets_hold_for_seeds_and_mutations() {
    let mut broken = Vec::new();
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has no seeds");
        for (seed, bytes) in &seeds {
            let mutations = (0..MUTATIONS).map(|round| mutated(bytes, round));
            let inputs = std::iter::once(bytes.clone()).chain(mutations);
            // The panic names the violated property; this names the input.
            if let Some(input) = inputs.into_iter().find(|input| catch_unwind(|| target(input)).is_err()) {
                broken.push(format!("{name}, from {seed}: {}", input.escape_ascii()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target);
    let read = || -> io::Result<Vec<_>> {
        fs::read_dir(&folder)?
            .map(|entry| {
                let path = entry?.path();
                Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), fs::read(path)?))
            })
            .collect()
    };
    let mut seeds = read().unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    seeds.sort();
    seeds
}

/// Returns the bytes with one to three random changes: bytes are replaced, removed, duplicated or inserted.
fn mutated(bytes: &[u8], round: u64) -> Vec<u8> {
    const SPECIAL: &[u8] = b"\"\\{}[]:,\0 \n-e.9ntf\xff/";
    let mut random = fastrand::Rng::with_seed(round ^ (bytes.len() as u64) << 32);
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.u8(..3) {
        let at = random.usize(..=bytes.len());
        match random.u8(..5) {
            0 if at < bytes.len() => bytes[at] = SPECIAL[random.usize(..SPECIAL.len())],
            1 if at < bytes.len() => bytes[at] ^= 1 << random.u8(..8),
            2 if at < bytes.len() => {
                let end = (at + 1 + random.usize(..8)).min(bytes.len());
                bytes.drain(at..end);
            }
            3 => {
                let end = (at + 1 + random.usize(..16)).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => bytes.insert(at, SPECIAL[random.usize(..SPECIAL.len())]),
        }
    }
    bytes
}
