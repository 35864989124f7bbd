//! Selects the fastest implementation for this processor.

#[cfg(any(miri, not(target_arch = "x86_64")))]
use super::skip::{Kernel, Skip, Specials};

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) use super::avx2::{skip, specials};

#[cfg(all(target_arch = "aarch64", not(miri)))]
use super::neon::Neon as Best;
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
use super::scalar::Scalar as Best;

#[cfg(any(miri, not(target_arch = "x86_64")))]
#[inline]
pub(super) fn skip(state: &mut Skip, bytes: &[u8]) -> Option<usize> {
    state.run::<Best>(bytes)
}

#[cfg(any(miri, not(target_arch = "x86_64")))]
#[inline]
pub(super) fn specials(block: &[u8; 64]) -> Specials {
    Best::specials(block)
}
