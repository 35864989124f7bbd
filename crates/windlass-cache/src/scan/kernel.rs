//! Chooses the fastest way this processor has.

use super::{scalar::Scalar, skip::Skip};

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub(super) fn skip(state: &mut Skip, bytes: &[u8]) -> Option<usize> {
    super::avx2::skip(state, bytes).unwrap_or_else(|| state.run::<Scalar>(bytes))
}

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline]
pub(super) fn skip(state: &mut Skip, bytes: &[u8]) -> Option<usize> {
    state.run::<super::neon::Neon>(bytes)
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) fn skip(state: &mut Skip, bytes: &[u8]) -> Option<usize> {
    state.run::<Scalar>(bytes)
}
