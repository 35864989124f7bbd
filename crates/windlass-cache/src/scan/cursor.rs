//! Reads JSON token by token.

use std::borrow::Cow;

use super::{
    ScanError, kernel,
    skip::{Skip, Specials},
    text::unescape,
};

/// The content of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// The offset after the opening quote.
    pub(super) start: usize,
    /// The offset of the closing quote.
    pub(super) end: usize,
    /// The content has escapes.
    pub(super) escaped: bool,
}

/// A position in JSON bytes.
pub(super) struct Cursor<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    /// A byte before the position, or within the same block, is not ASCII.
    pub(super) non_ascii: bool,
    /// There are line breaks or tabs before the position.
    pub(super) has_controls: bool,
    /// The block of bytes that was classified last.
    block: Block,
}

/// A block of up to 64 bytes, with a mask of the bytes that can end the plain text of a string.
#[derive(Clone, Copy)]
struct Block {
    start: usize,
    length: usize,
    special: u64,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        let block = Block { start: 0, length: 0, special: 0 };
        Self { bytes, at: 0, non_ascii: false, has_controls: false, block }
    }

    /// Skips white space and returns the next byte.
    #[inline(always)]
    pub(super) fn peek(&mut self) -> Result<u8, ScanError> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte > b' ' => Ok(byte),
            _ => self.pass_space(),
        }
    }

    #[cold]
    fn pass_space(&mut self) -> Result<u8, ScanError> {
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

    #[inline(always)]
    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), ScanError> {
        if self.peek()? == byte {
            self.at += 1;
            Ok(())
        } else {
            Err(ScanError::syntax(self.at, expected))
        }
    }

    /// Moves past `byte` if `byte` is next. Returns whether `byte` was next.
    #[inline(always)]
    pub(super) fn eat(&mut self, byte: u8) -> Result<bool, ScanError> {
        let found = self.peek()? == byte;
        self.at += usize::from(found);
        Ok(found)
    }

    /// Reads a member's name and the colon after it.
    #[inline(always)]
    pub(super) fn key(&mut self) -> Result<Token, ScanError> {
        let key = self.string("a member name")?;
        self.expect(b':', "`:`")?;
        Ok(key)
    }

    /// Reads a string.
    #[inline(always)]
    pub(super) fn string(&mut self, expected: &'static str) -> Result<Token, ScanError> {
        self.expect(b'"', expected)?;
        self.content()
    }

    /// Reads a string whose opening quote has been read.
    #[inline(always)]
    fn content(&mut self) -> Result<Token, ScanError> {
        match self.plain_content() {
            Some(token) => Ok(token),
            None => self.content_by_blocks(),
        }
    }

    /// Works like [`Self::content`], for a string without escapes that ends in the current block, as nearly
    /// all do.
    #[inline(always)]
    fn plain_content(&mut self) -> Option<Token> {
        let start = self.at;
        let within = start.wrapping_sub(self.block.start);
        if within >= self.block.length {
            return None;
        }
        let special = self.block.special >> within;
        let end = start + special.trailing_zeros() as usize;
        if special == 0 || self.bytes.get(end) != Some(&b'"') {
            return None;
        }
        self.at = end + 1;
        Some(Token { start, end, escaped: false })
    }

    #[inline(never)]
    fn content_by_blocks(&mut self) -> Result<Token, ScanError> {
        let start = self.at;
        let mut escaped = false;
        if start < self.bytes.len() {
            // A block that begins here contains most strings completely, and often the next strings, too.
            self.classify();
            if let Some(token) = self.plain_content() {
                return Ok(token);
            }
        }
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
                Some(_) => return Err(ScanError::syntax(self.at, "no control character in a string")),
                None => return Err(ScanError::Incomplete),
            }
        }
    }

    /// Moves to the next quote, backslash or control character, or to the end.
    #[inline]
    fn find_special(&mut self) {
        loop {
            let within = self.at.wrapping_sub(self.block.start);
            if within >= self.block.length {
                if self.at >= self.bytes.len() {
                    return;
                }
                self.classify();
                continue;
            }
            let special = self.block.special >> within;
            if special != 0 {
                self.at += special.trailing_zeros() as usize;
                return;
            }
            self.at = self.block.start + self.block.length;
        }
    }

    /// Classifies the block that begins here.
    #[inline]
    fn classify(&mut self) {
        let rest = &self.bytes[self.at..];
        let (Specials { special, high }, length) = if let Some(block) = rest.first_chunk::<64>() {
            (kernel::specials(block), 64)
        } else {
            let mut block = [b' '; 64];
            block[..rest.len()].copy_from_slice(rest);
            (kernel::specials(&block), rest.len())
        };
        self.non_ascii |= high;
        self.block = Block { start: self.at, length, special };
    }

    /// Moves past an escape.
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

    /// Moves past `null` if `null` is next. Returns whether `null` was next.
    pub(super) fn eat_null(&mut self) -> Result<bool, ScanError> {
        if self.peek()? == b'n' {
            self.literal(b"null")?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Returns a string without escapes.
    #[inline(always)]
    pub(super) fn unescaped(&self, token: Token) -> Result<Cow<'a, [u8]>, ScanError> {
        let content = &self.bytes[token.start..token.end];
        if token.escaped { unescape(content, token.start) } else { Ok(Cow::Borrowed(content)) }
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

    /// Reads a number and returns the text of the number.
    ///
    /// A number at the end of the bytes is incomplete, because more digits may follow.
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

/// Reads the members and elements of containers.
pub(super) trait ReadContainers<'a>: Sized {
    fn cursor(&mut self) -> &mut Cursor<'a>;

    /// Reads the object at the cursor. `member` gets each name, and moves past the value.
    #[inline(always)]
    fn each_member(
        &mut self,
        mut member: impl FnMut(&mut Self, Token) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        self.cursor().expect(b'{', "`{`")?;
        if self.cursor().eat(b'}')? {
            return Ok(());
        }
        loop {
            let name = self.cursor().key()?;
            member(self, name)?;
            if self.cursor().eat(b'}')? {
                return Ok(());
            }
            self.cursor().expect(b',', "`,` or `}`")?;
        }
    }

    /// Reads the array at the cursor. `element` moves past each element.
    #[inline(always)]
    fn each_element(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), ScanError>,
    ) -> Result<(), ScanError> {
        self.cursor().expect(b'[', "`[`")?;
        if self.cursor().eat(b']')? {
            return Ok(());
        }
        loop {
            self.cursor().peek()?;
            element(self)?;
            if self.cursor().eat(b']')? {
                return Ok(());
            }
            self.cursor().expect(b',', "`,` or `]`")?;
        }
    }
}

impl<'a> ReadContainers<'a> for Cursor<'a> {
    #[inline(always)]
    fn cursor(&mut self) -> &mut Self {
        self
    }
}
