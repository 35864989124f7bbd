//! Finds the end of a JSON container without parsing its content.
//!
//! The skip works on blocks of 64 bytes. Bit masks say which bytes are quotes, backslashes, and opening or closing brackets; a
//! prefix xor over the quotes says which bytes are inside strings. While a block has fewer closing brackets than there are open
//! containers, it cannot contain the end, and two population counts are enough.
#![expect(
    clippy::inline_always,
    reason = "only inlined functions are compiled for the kernel's instructions"
)]

use super::kernel;

/// Bit masks of a block of 64 bytes. Bit `i` belongs to byte `i`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Masks {
    pub(super) quote: u64,
    pub(super) backslash: u64,
    pub(super) open: u64,
    pub(super) close: u64,
    /// Bytes that are not ASCII.
    pub(super) high: u64,
    /// Control characters.
    pub(super) control: u64,
}

/// The bytes of a block that matter for reading a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Specials {
    /// Quotes, backslashes and control characters. Bit `i` belongs to byte `i`.
    pub(super) special: u64,
    /// True if a byte is not ASCII.
    pub(super) high: bool,
}

/// An implementation of [`Masks`] for some instruction set.
pub(super) trait Kernel {
    fn classify(block: &[u8; 64]) -> Masks;
    /// Returns the prefix xor: bit `i` of the result is the xor of bits `0..=i`.
    fn prefix_xor(bits: u64) -> u64;

    #[inline(always)]
    fn specials(block: &[u8; 64]) -> Specials {
        let masks = Self::classify(block);
        Specials { special: masks.quote | masks.backslash | masks.control, high: masks.high != 0 }
    }
}

/// The state of a skip. The skip can stop after any byte and continue with the next byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Skip {
    depth: usize,
    /// All ones inside a string, otherwise zero.
    in_string: u64,
    /// One if the next byte is escaped, otherwise zero.
    escaped: u64,
    /// A byte was not ASCII.
    pub(crate) non_ascii: bool,
    /// A byte was a control character, such as a line break or tab.
    pub(crate) has_controls: bool,
    /// True if a control character was inside a string, a violation of JSON.
    pub(crate) has_controls_in_strings: bool,
}

impl Skip {
    /// Continues with `bytes`. The first byte of the first call opens the container. Returns the offset after the container's last
    /// byte, or `None` if the container continues after `bytes`.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        kernel::skip(self, bytes)
    }

    /// Returns whether the bytes so far end inside a string.
    pub(crate) fn is_in_string(&self) -> bool {
        self.in_string != 0
    }

    /// Works like [`Self::feed`], with the portable implementation.
    pub(super) fn feed_scalar(&mut self, bytes: &[u8]) -> Option<usize> {
        self.run::<super::scalar::Scalar>(bytes)
    }

    #[inline(always)]
    pub(super) fn run<K: Kernel>(&mut self, bytes: &[u8]) -> Option<usize> {
        let (blocks, tail) = bytes.as_chunks::<64>();
        for (number, block) in blocks.iter().enumerate() {
            if let Some(end) = self.block::<K>(block, 64) {
                return Some(number * 64 + end);
            }
        }
        if tail.is_empty() {
            return None;
        }
        let mut last = [b' '; 64];
        last[..tail.len()].copy_from_slice(tail);
        self.block::<K>(&last, tail.len()).map(|end| blocks.len() * 64 + end)
    }

    #[inline(always)]
    fn block<K: Kernel>(&mut self, block: &[u8; 64], length: usize) -> Option<usize> {
        let masks = K::classify(block);
        self.non_ascii |= masks.high != 0;
        let quote = masks.quote & !self.escapes(masks.backslash, length);
        let in_string = K::prefix_xor(quote) ^ self.in_string;
        self.in_string = ((in_string as i64) >> 63) as u64;
        let open = masks.open & !in_string;
        let close = masks.close & !in_string;
        let closed = close.count_ones() as usize;
        let end = if self.depth > closed {
            self.depth = self.depth + open.count_ones() as usize - closed;
            None
        } else {
            self.walk(open, close)
        };
        if masks.control != 0 {
            self.note_controls(masks.control, in_string, end);
        }
        end
    }

    /// Returns a mask of the bytes that are escaped by a backslash. The block has `length` valid bytes.
    #[inline(always)]
    fn escapes(&mut self, backslash: u64, length: usize) -> u64 {
        const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        if backslash == 0 {
            return std::mem::take(&mut self.escaped);
        }
        // A run of backslashes of odd length escapes the next byte. Subtracting the starts of the runs from
        // the odd bits carries through each run; the parity of the end shows the parity of the length.
        let start = backslash & !self.escaped;
        let even = (start << 1 | ODD).wrapping_sub(start) ^ ODD;
        let escaped = even ^ (backslash | self.escaped);
        let escaping = even & backslash;
        self.escaped = escaping >> (length - 1) & 1;
        escaped
    }

    #[cold]
    #[inline(never)]
    fn note_controls(&mut self, control: u64, in_string: u64, end: Option<usize>) {
        // Ignore the bytes after the container.
        let own = match end {
            Some(end) if end < 64 => control & ((1 << end) - 1),
            _ => control,
        };
        self.has_controls |= own != 0;
        self.has_controls_in_strings |= own & in_string != 0;
    }

    #[cold]
    #[inline(never)]
    fn walk(&mut self, open: u64, close: u64) -> Option<usize> {
        let mut brackets = open | close;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            brackets &= brackets - 1;
            if open >> at & 1 == 1 {
                self.depth += 1;
            } else if self.depth <= 1 {
                self.depth = 0;
                return Some(at as usize + 1);
            } else {
                self.depth -= 1;
            }
        }
        None
    }
}
