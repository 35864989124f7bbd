//! The random generator of the corpus. The code is part of the benchmarks, because an update of a dependency
//! must not change the corpus.

/// A SplitMix64 generator.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }

    pub(crate) fn letters(&mut self, alphabet: &str, length: usize) -> String {
        let alphabet = alphabet.as_bytes();
        (0..length).map(|_| char::from(*self.pick(alphabet))).collect()
    }

    pub(crate) fn uid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            a >> 32,
            (a >> 16) & 0xffff,
            a & 0xfff,
            0x8000 | ((b >> 48) & 0x3fff),
            b & 0xffff_ffff_ffff
        )
    }

    pub(crate) fn time(&mut self) -> String {
        let (month, day) = (self.below(9) + 1, self.below(19) + 10);
        let (hour, minute, second) = (self.below(14) + 10, self.below(50) + 10, self.below(50) + 10);
        format!("2026-0{month}-{day}T{hour}:{minute}:{second}Z")
    }
}
