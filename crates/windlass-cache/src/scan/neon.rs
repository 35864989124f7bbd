//! The implementation with NEON, which every aarch64 processor has.
#![expect(unsafe_code, reason = "vector intrinsics; the functions around them are safe")]
#![expect(clippy::inline_always, reason = "a call for each 64 bytes would cost more than the work itself")]

use std::arch::aarch64::{
    uint8x16_t, vandq_u8, vceqq_u8, vcgeq_u8, vcltq_u8, vdupq_n_u8, vgetq_lane_u64, vld1q_u8, vorrq_u8,
    vpaddq_u8, vreinterpretq_u64_u8,
};

use super::skip::{Kernel, Masks};

pub(super) struct Neon;

impl Kernel for Neon {
    #[inline(always)]
    fn classify(block: &[u8; 64]) -> Masks {
        // SAFETY: NEON is part of every aarch64 processor that Rust's targets run on; the four loads lie
        // within the 64 bytes.
        unsafe {
            let parts = [
                vld1q_u8(block.as_ptr()),
                vld1q_u8(block.as_ptr().add(16)),
                vld1q_u8(block.as_ptr().add(32)),
                vld1q_u8(block.as_ptr().add(48)),
            ];
            // `[` and `{`, `]` and `}` differ in one bit only.
            let folded = parts.map(|part| vorrq_u8(part, vdupq_n_u8(0x20)));
            let is =
                |parts: [uint8x16_t; 4], byte| gather(parts.map(|part| vceqq_u8(part, vdupq_n_u8(byte))));
            let top = parts.map(|part| vcgeq_u8(part, vdupq_n_u8(0x80)));
            Masks {
                quote: is(parts, b'"'),
                backslash: is(parts, b'\\'),
                open: is(folded, b'{'),
                close: is(folded, b'}'),
                high: gather(top),
                control: gather(parts.map(|part| vcltq_u8(part, vdupq_n_u8(0x20)))),
            }
        }
    }

    #[inline(always)]
    fn prefix_xor(bits: u64) -> u64 {
        super::scalar::Scalar::prefix_xor(bits)
    }
}

/// Gathers a bit from each of 64 bytes. Each byte is all ones or zero.
#[inline]
#[target_feature(enable = "neon")]
fn gather(parts: [uint8x16_t; 4]) -> u64 {
    const BITS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
    // SAFETY: the load lies within the sixteen bytes.
    let bits = unsafe { vld1q_u8(BITS.as_ptr()) };
    let [a, b, c, d] = parts.map(|part| vandq_u8(part, bits));
    let pairs = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
    vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(pairs, pairs)))
}
