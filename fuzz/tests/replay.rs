//! Every target on its seeds, and on mutations of them that are the same in every run.

use std::panic::catch_unwind;
use std::path::Path;
use std::{fs, io};

use windlass_fuzz::TARGETS;

/// Mutations of each seed.
const MUTATIONS: u64 = 400;

#[test]
fn targets_hold_for_their_seeds_and_mutations_of_them() {
    let mut broken = Vec::new();
    for (name, target) in TARGETS {
        let seeds = seeds(name);
        assert!(!seeds.is_empty(), "{name} has no seeds");
        for (seed, bytes) in &seeds {
            let mutations = (0..MUTATIONS).map(|round| mutated(bytes, round));
            let inputs = std::iter::once(bytes.clone()).chain(mutations);
            // The panic itself says what does not hold; this says for which input.
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

/// A few bytes changed, taken out, doubled or put in.
fn mutated(bytes: &[u8], round: u64) -> Vec<u8> {
    const TELLING: &[u8] = b"\"\\{}[]:,\0 \n-e.9ntf\xff/";
    let mut random = Random(round.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ bytes.len() as u64);
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        match random.below(5) {
            0 if at < bytes.len() => bytes[at] = TELLING[random.below(TELLING.len() as u64) as usize],
            1 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            2 if at < bytes.len() => {
                let end = (at + 1 + random.below(8) as usize).min(bytes.len());
                bytes.drain(at..end);
            }
            3 => {
                let end = (at + 1 + random.below(16) as usize).min(bytes.len());
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            _ => bytes.insert(at, TELLING[random.below(TELLING.len() as u64) as usize]),
        }
    }
    bytes
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}
