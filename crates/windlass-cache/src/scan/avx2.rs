//! The implementation with AVX2 and carry-less multiplication.
#![expect(unsafe_code, reason = "vector intrinsics; the functions around them are safe")]
#![expect(clippy::inline_always, reason = "only functions inlined into `skip_avx2` are compiled for AVX2")]
#![expect(clippy::cast_ptr_alignment, reason = "the loads need no alignment")]

use std::arch::x86_64::{
    __m256i, _mm_clmulepi64_si128, _mm_cvtsi128_si64, _mm_set_epi64x, _mm_set1_epi8, _mm256_cmpeq_epi8,
    _mm256_loadu_si256, _mm256_max_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_set1_epi8,
};

use super::{
    scalar::Scalar,
    skip::{Kernel, Masks, Skip, Specials},
};

/// Continues a skip. Uses the portable implementation if the processor lacks the instructions.
#[inline]
pub(super) fn skip(state: &mut Skip, bytes: &[u8]) -> Option<usize> {
    let available = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("pclmulqdq")
        && is_x86_feature_detected!("popcnt")
        && is_x86_feature_detected!("bmi1");
    if !available {
        return state.run::<Scalar>(bytes);
    }
    // SAFETY: the processor has the features that `skip_avx2` is compiled for.
    unsafe { skip_avx2(state, bytes) }
}

#[target_feature(enable = "avx2,pclmulqdq,popcnt,bmi1")]
fn skip_avx2(state: &mut Skip, bytes: &[u8]) -> Option<usize> {
    state.run::<Avx2>(bytes)
}

/// Classifies a block for reading a string.
#[inline]
pub(super) fn specials(block: &[u8; 64]) -> Specials {
    if !is_x86_feature_detected!("avx2") {
        return Scalar::specials(block);
    }
    // SAFETY: the processor has the feature that `specials_avx2` is compiled for.
    unsafe { specials_avx2(block) }
}

#[target_feature(enable = "avx2")]
fn specials_avx2(block: &[u8; 64]) -> Specials {
    Avx2::specials(block)
}

/// Used only by the functions above: the methods run only on processors with the features.
struct Avx2;

impl Kernel for Avx2 {
    #[inline(always)]
    fn classify(block: &[u8; 64]) -> Masks {
        // SAFETY: see the type.
        unsafe { classify(block) }
    }

    #[inline(always)]
    fn prefix_xor(bits: u64) -> u64 {
        // SAFETY: see the type.
        unsafe { prefix_xor(bits) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn classify(block: &[u8; 64]) -> Masks {
    // SAFETY: both loads lie within the 64 bytes, and need no alignment.
    let (low, high) = unsafe {
        (
            _mm256_loadu_si256(block.as_ptr().cast::<__m256i>()),
            _mm256_loadu_si256(block.as_ptr().add(32).cast::<__m256i>()),
        )
    };
    // `[` and `{`, `]` and `}` differ in one bit only.
    let fold = _mm256_set1_epi8(0x20);
    let last_control = _mm256_set1_epi8(0x1F);
    let (low_folded, high_folded) = (_mm256_or_si256(low, fold), _mm256_or_si256(high, fold));
    Masks {
        quote: equal(low, high, b'"'),
        backslash: equal(low, high, b'\\'),
        open: equal(low_folded, high_folded, b'{'),
        close: equal(low_folded, high_folded, b'}'),
        high: join(_mm256_movemask_epi8(low), _mm256_movemask_epi8(high)),
        // The maximum of a control character and the last control character is the latter.
        control: equal(_mm256_max_epu8(low, last_control), _mm256_max_epu8(high, last_control), 0x1F),
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn equal(low: __m256i, high: __m256i, byte: u8) -> u64 {
    let wanted = _mm256_set1_epi8(byte as i8);
    join(
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(low, wanted)),
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(high, wanted)),
    )
}

#[inline(always)]
fn join(low: i32, high: i32) -> u64 {
    u64::from(low as u32) | u64::from(high as u32) << 32
}

#[inline]
#[target_feature(enable = "pclmulqdq")]
fn prefix_xor(bits: u64) -> u64 {
    let product = _mm_clmulepi64_si128::<0>(_mm_set_epi64x(0, bits as i64), _mm_set1_epi8(-1));
    _mm_cvtsi128_si64(product) as u64
}
