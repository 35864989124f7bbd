//! The portable implementation: eight bytes at a time in a 64-bit word.

use super::skip::{Kernel, Masks};

pub(super) struct Scalar;

const LOW: u64 = 0x7F7F_7F7F_7F7F_7F7F;
const ONES: u64 = 0x0101_0101_0101_0101;

/// Sets the high bit of each byte of `word` that equals `byte`.
pub(super) fn equal(word: u64, byte: u8) -> u64 {
    let difference = word ^ (ONES * u64::from(byte));
    !(((difference & LOW) + LOW) | difference | LOW)
}

/// Gathers the high bits of the eight bytes in the low eight bits.
fn gather(high_bits: u64) -> u64 {
    (high_bits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

impl Kernel for Scalar {
    #[inline]
    fn classify(block: &[u8; 64]) -> Masks {
        let mut masks = Masks { quote: 0, backslash: 0, open: 0, close: 0, high: 0, control: 0 };
        let (words, _) = block.as_chunks::<8>();
        for (number, word) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let shift = number * 8;
            // `[` and `{`, `]` and `}` differ in one bit only.
            let folded = word | (ONES * 0x20);
            masks.quote |= gather(equal(word, b'"')) << shift;
            masks.backslash |= gather(equal(word, b'\\')) << shift;
            masks.open |= gather(equal(folded, b'{')) << shift;
            masks.close |= gather(equal(folded, b'}')) << shift;
            masks.high |= gather(word & !LOW) << shift;
            masks.control |= gather(equal(word & (ONES * 0xE0), 0)) << shift;
        }
        masks
    }

    #[inline]
    fn prefix_xor(mut bits: u64) -> u64 {
        for shift in [1, 2, 4, 8, 16, 32] {
            bits ^= bits << shift;
        }
        bits
    }
}
