//! The texts that an object does not share with the base: digests and times are packed.

/// The form in which a text is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnText {
    /// A text of this length, literally.
    Literal(usize),
    /// Twice as many hexadecimal digits as there are bytes.
    Hex(usize),
    /// A time such as `2026-01-02T03:04:05Z`, in [`TIME`] bytes.
    Time,
}

/// The length of a packed time, and of the time as text.
const TIME: usize = 4;
const TIME_TEXT: usize = 20;
/// Fewer digits are not packed.
pub(super) const FEWEST_DIGITS: usize = 16;

/// The parts of a time: the offset of the two digits, and the number of bits of the number.
const PARTS: [(usize, u32); 6] = [(2, 6), (5, 4), (8, 5), (11, 5), (14, 6), (17, 6)];
/// The text of a time around the parts.
const FRAME: &[u8; TIME_TEXT] = b"20__-__-__T__:__:__Z";
/// The places in [`FRAME`] outside of the parts.
const SEPARATORS: [usize; 8] = [0, 1, 4, 7, 10, 13, 16, 19];

impl OwnText {
    /// Returns the length of the text.
    pub(super) fn length(self) -> usize {
        match self {
            Self::Literal(length) => length,
            Self::Hex(bytes) => 2 * bytes,
            Self::Time => TIME_TEXT,
        }
    }

    /// Returns the number of stored bytes.
    pub(super) fn stored(self) -> usize {
        match self {
            Self::Literal(bytes) | Self::Hex(bytes) => bytes,
            Self::Time => TIME,
        }
    }

    /// Appends the stored bytes of a text. Returns `false` if the text does not have this form.
    pub(super) fn store(self, text: &[u8], stored: &mut Vec<u8>) -> bool {
        match self {
            Self::Literal(_) => stored.extend_from_slice(text),
            Self::Hex(_) => {
                // Without an end at the first other byte, the comparisons are vector instructions.
                if !text.iter().fold(true, |all, &byte| all & is_digit(byte)) {
                    return false;
                }
                let (pairs, _) = text.as_chunks();
                stored.extend(pairs.iter().map(|&[high, low]| value(high) << 4 | value(low)));
            }
            Self::Time => match pack_time(text) {
                Some(time) => stored.extend_from_slice(&time.to_le_bytes()),
                None => return false,
            },
        }
        true
    }

    /// Appends the text that is stored as `stored`.
    #[inline]
    pub(super) fn expand(self, stored: &[u8], text: &mut Vec<u8>) {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        match self {
            Self::Literal(_) => text.extend_from_slice(stored),
            Self::Hex(_) => text.extend(
                stored
                    .iter()
                    .flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]),
            ),
            Self::Time => {
                let time = stored.first_chunk().map_or(0, |time| u32::from_le_bytes(*time));
                text.extend_from_slice(&unpack_time(time));
            }
        }
    }
}

/// Returns whether a byte is a hexadecimal digit in lower case.
fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() | matches!(byte, b'a'..=b'f')
}

fn value(digit: u8) -> u8 {
    (digit & 15) + 9 * (digit >> 6)
}

/// Returns the packed time, if the text is a time in the years from 2000 to 2063.
fn pack_time(text: &[u8]) -> Option<u32> {
    let text: &[u8; TIME_TEXT] = text.try_into().ok()?;
    if SEPARATORS.iter().any(|&at| text[at] != FRAME[at]) {
        return None;
    }
    PARTS.iter().try_fold(0, |time, &(at, bits)| {
        let [tens, ones] = [text[at], text[at + 1]].map(|digit| u32::from(digit.wrapping_sub(b'0')));
        let part = tens * 10 + ones;
        (tens <= 9 && ones <= 9 && part < 1 << bits).then_some(time << bits | part)
    })
}

fn unpack_time(mut time: u32) -> [u8; TIME_TEXT] {
    let mut text = *FRAME;
    for &(at, bits) in PARTS.iter().rev() {
        let part = (time & ((1 << bits) - 1)) as u8;
        (text[at], text[at + 1]) = (b'0' + part / 10, b'0' + part % 10);
        time >>= bits;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text after the way through the stored form, or `None` if the text does not have the form.
    fn round(form: OwnText, text: &str) -> Option<String> {
        let (mut stored, mut expanded) = (Vec::new(), Vec::new());
        if !form.store(text.as_bytes(), &mut stored) {
            return None;
        }
        assert_eq!((stored.len(), text.len()), (form.stored(), form.length()));
        form.expand(&stored, &mut expanded);
        Some(String::from_utf8(expanded).expect("text"))
    }

    #[test]
    fn a_packed_text_is_the_same_text() {
        for time in ["2026-01-02T03:04:05Z", "2000-00-00T00:00:00Z", "2063-15-31T31:63:63Z"] {
            assert_eq!(round(OwnText::Time, time).as_deref(), Some(time));
        }
        let digest = "0123456789abcdef00ff";
        assert_eq!(round(OwnText::Hex(10), digest).as_deref(), Some(digest));
    }

    #[test]
    fn another_text_is_not_packed() {
        for text in [
            "2064-01-02T03:04:05Z",
            "1999-01-02T03:04:05Z",
            "2026-16-02T03:04:05Z",
            "2026-01-02t03:04:05Z",
            "2026-01-02T03:04:+5Z",
            "2026-01-02T03:04:05.5Z",
            "",
        ] {
            assert_eq!(round(OwnText::Time, text), None, "{text}");
        }
        assert_eq!(round(OwnText::Hex(2), "00FF"), None);
        assert_eq!(round(OwnText::Hex(2), "00g0"), None);
    }
}
