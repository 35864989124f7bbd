//! Finds the end of a JSON container without looking at what is inside.
//!
//! 64 bytes at a time: which of them are quotes, backslashes, opening or closing brackets, as bit masks; which of
//! those lie inside strings, by a prefix xor over the quotes. As long as a block has fewer closing brackets than
//! containers are open, the end cannot be in it and two population counts are all the work.
#![expect(
    clippy::inline_always,
    reason = "what is not inlined is not compiled for the kernel's instructions"
)]

use super::kernel;

/// Bit masks of one block of 64 bytes; bit `i` speaks of byte `i`.
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

/// What a string's text is read by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Specials {
    /// Quotes, backslashes and control characters; bit `i` speaks of byte `i`.
    pub(super) special: u64,
    /// Some byte is not ASCII.
    pub(super) high: bool,
}

/// One way to compute [`Masks`].
pub(super) trait Kernel {
    fn classify(block: &[u8; 64]) -> Masks;
    /// Bit `i` of the result is the xor of bits `0..=i`.
    fn prefix_xor(bits: u64) -> u64;

    #[inline(always)]
    fn specials(block: &[u8; 64]) -> Specials {
        let masks = Self::classify(block);
        Specials { special: masks.quote | masks.backslash | masks.control, high: masks.high != 0 }
    }
}

/// Where a skip stands. It can stop after any byte and go on with the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Skip {
    depth: usize,
    /// All ones inside a string, else zero.
    in_string: u64,
    /// One when the next byte is escaped, else zero.
    escaped: u64,
    /// Some byte was not ASCII.
    pub(crate) non_ascii: bool,
    /// Some byte was a control character: a line break, a tab.
    pub(crate) has_controls: bool,
    /// Some such byte stood in a string, where JSON allows none.
    pub(crate) has_controls_in_strings: bool,
}

impl Skip {
    /// Goes on over `bytes`, the first of which opened the container unless this continues an earlier call.
    /// Answers the offset behind the container's last byte, or `None` when the container goes on behind `bytes`.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Option<usize> {
        kernel::skip(self, bytes)
    }

    /// Whether the bytes so far end inside a string.
    pub(crate) fn is_in_string(&self) -> bool {
        self.in_string != 0
    }

    /// The same by the scalar twin, whatever the processor offers.
    #[cfg(any(test, feature = "fuzzing"))]
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

    /// Which bytes are escaped by a backslash before them. `length` bytes of the block are real.
    #[inline(always)]
    fn escapes(&mut self, backslash: u64, length: usize) -> u64 {
        const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        if backslash == 0 {
            return std::mem::take(&mut self.escaped);
        }
        // A run of backslashes escapes what follows it when its length is odd. Subtracting the starts from
        // the odd bits carries through each run, and tells by the parity of its end which it was.
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
        // What comes behind the container is not its own.
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
