//! Chooses the fastest way this processor has.

#[cfg(any(miri, not(target_arch = "x86_64")))]
use super::skip::Skip;

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(super) use super::avx2::skip;

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[inline]
pub(super) fn skip(state: &mut Skip, bytes: &[u8]) -> Option<usize> {
    state.run::<super::neon::Neon>(bytes)
}

#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) fn skip(state: &mut Skip, bytes: &[u8]) -> Option<usize> {
    state.run::<super::scalar::Scalar>(bytes)
}
