//! Compares the implementation for this processor with the portable implementation, for the tests and the
//! fuzz target.

use super::{
    kernel,
    scalar::Scalar,
    skip::{Kernel, Skip},
};

/// Skips a container with both implementations, in pieces that end at `cuts`, and returns its end.
///
/// # Panics
/// The implementations disagree.
pub fn compare(bytes: &[u8], cuts: &[usize]) -> Option<usize> {
    let portable = in_pieces(bytes, cuts, Skip::feed_scalar);
    assert_eq!(in_pieces(bytes, cuts, Skip::feed), portable, "in pieces that end at {cuts:?}");
    for block in bytes.as_chunks().0 {
        assert_eq!(kernel::specials(block), Scalar::specials(block));
    }
    portable.0
}

/// Returns the end, and the state of the skip there.
fn in_pieces(
    bytes: &[u8],
    cuts: &[usize],
    feed: fn(&mut Skip, &[u8]) -> Option<usize>,
) -> (Option<usize>, Skip) {
    let mut skip = Skip::default();
    let mut start = 0;
    for &cut in cuts.iter().chain([&bytes.len()]) {
        let cut = cut.clamp(start, bytes.len());
        if let Some(end) = feed(&mut skip, &bytes[start..cut]) {
            return (Some(start + end), skip);
        }
        start = cut;
    }
    (None, skip)
}
