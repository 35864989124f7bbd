//! Reads JSON token by token.

use super::{ScanError, scalar::equal, skip::Skip};

/// A string token: where its content lies, and whether it holds escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// Behind the opening quote.
    pub(super) start: usize,
    /// At the closing quote.
    pub(super) end: usize,
    pub(super) escaped: bool,
}

/// A place in JSON bytes.
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// Some byte so far was not ASCII.
    pub(super) non_ascii: bool,
    /// There were line breaks or tabs so far.
    pub(super) has_controls: bool,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, non_ascii: false, has_controls: false }
    }

    /// The next byte that is not white space; the cursor is moved to it.
    #[inline]
    pub(super) fn peek(&mut self) -> Result<u8, ScanError> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ') => self.at += 1,
                Some(b'\n' | b'\r' | b'\t') => {
                    self.has_controls = true;
                    self.at += 1;
                }
                Some(&byte) => return Ok(byte),
                None => return Err(ScanError::Incomplete),
            }
        }
    }

    #[inline]
    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), ScanError> {
        if self.peek()? == byte {
            self.at += 1;
            Ok(())
        } else {
            Err(ScanError::syntax(self.at, expected))
        }
    }

    /// Moves past `byte` when it comes next.
    #[inline]
    pub(super) fn eat(&mut self, byte: u8) -> Result<bool, ScanError> {
        let found = self.peek()? == byte;
        self.at += usize::from(found);
        Ok(found)
    }

    /// Reads a member's name and the colon behind it.
    #[inline]
    pub(super) fn key(&mut self) -> Result<Token, ScanError> {
        let key = self.string("a member name")?;
        self.expect(b':', "`:`")?;
        Ok(key)
    }

    /// Reads a string.
    pub(super) fn string(&mut self, expected: &'static str) -> Result<Token, ScanError> {
        self.expect(b'"', expected)?;
        let start = self.at;
        let mut escaped = false;
        loop {
            self.find_special();
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    let end = self.at;
                    self.at += 1;
                    return Ok(Token { start, end, escaped });
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(0..0x20) => return Err(ScanError::syntax(self.at, "no control character in a string")),
                Some(byte) => {
                    self.non_ascii |= !byte.is_ascii();
                    self.at += 1;
                }
                None => return Err(ScanError::Incomplete),
            }
        }
    }

    /// Moves on to a word that holds a quote, a backslash or a control character, by whole words.
    #[inline]
    fn find_special(&mut self) {
        while let Some(word) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            let word = u64::from_le_bytes(*word);
            let control = word.wrapping_sub(0x2020_2020_2020_2020) & !word & 0x8080_8080_8080_8080;
            let special = equal(word, b'"') | equal(word, b'\\') | control;
            let clean = special.trailing_zeros() as usize / 8;
            // Bytes behind the first special one are looked at again, or belong to something else.
            let seen = if clean >= 8 { word } else { word & ((1 << (clean * 8)) - 1) };
            self.non_ascii |= seen & 0x8080_8080_8080_8080 != 0;
            self.at += clean;
            if clean < 8 {
                return;
            }
        }
    }

    /// Moves past one escape.
    fn escape(&mut self) -> Result<(), ScanError> {
        const EXPECTED: &str = "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX";
        match self.bytes.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                for offset in 2..6 {
                    match self.bytes.get(self.at + offset) {
                        Some(byte) if byte.is_ascii_hexdigit() => {}
                        Some(_) => return Err(ScanError::syntax(self.at, EXPECTED)),
                        None => return Err(ScanError::Incomplete),
                    }
                }
                self.at += 6;
            }
            Some(_) => return Err(ScanError::syntax(self.at, EXPECTED)),
            None => return Err(ScanError::Incomplete),
        }
        Ok(())
    }

    /// Moves past any value.
    #[inline]
    pub(super) fn skip_value(&mut self) -> Result<(), ScanError> {
        match self.peek()? {
            b'{' | b'[' => self.skip_container(),
            b'"' => self.string("a string").map(drop),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            b'-' | b'0'..=b'9' => self.number().map(drop),
            _ => Err(ScanError::syntax(self.at, "a value")),
        }
    }

    /// Moves past the container that begins here.
    fn skip_container(&mut self) -> Result<(), ScanError> {
        let mut skip = Skip::default();
        let end = skip.feed(&self.bytes[self.at..]).ok_or(ScanError::Incomplete)?;
        if skip.has_controls_in_strings {
            return Err(ScanError::syntax(self.at, "no control character in a string of this value"));
        }
        self.non_ascii |= skip.non_ascii;
        self.has_controls |= skip.has_controls;
        self.at += end;
        Ok(())
    }

    /// Moves past `null` when it comes next.
    pub(super) fn eat_null(&mut self) -> Result<bool, ScanError> {
        if self.peek()? == b'n' {
            self.literal(b"null")?;
            return Ok(true);
        }
        Ok(false)
    }

    pub(super) fn literal(&mut self, literal: &'static [u8]) -> Result<(), ScanError> {
        let rest = &self.bytes[self.at..];
        if rest.starts_with(literal) {
            self.at += literal.len();
            Ok(())
        } else if literal.starts_with(rest) {
            Err(ScanError::Incomplete)
        } else {
            Err(ScanError::syntax(self.at, "true, false or null"))
        }
    }

    /// Reads a number; answers its text.
    ///
    /// A number that touches the end of the bytes is incomplete: more digits may follow.
    pub(super) fn number(&mut self) -> Result<&'a [u8], ScanError> {
        let start = self.at;
        self.at += usize::from(self.byte()? == b'-');
        if self.byte()? == b'0' {
            self.at += 1;
            if self.byte()?.is_ascii_digit() {
                return Err(ScanError::syntax(start, "a number without leading zeros"));
            }
        } else {
            self.digits()?;
        }
        if self.byte()? == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte()?, b'e' | b'E') {
            self.at += 1;
            self.at += usize::from(matches!(self.byte()?, b'+' | b'-'));
            self.digits()?;
        }
        Ok(&self.bytes[start..self.at])
    }

    fn digits(&mut self) -> Result<(), ScanError> {
        if !self.byte()?.is_ascii_digit() {
            return Err(ScanError::syntax(self.at, "a digit"));
        }
        while self.byte()?.is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }

    fn byte(&self) -> Result<u8, ScanError> {
        self.bytes.get(self.at).copied().ok_or(ScanError::Incomplete)
    }
}
