//! The text of JSON strings with escapes.

use std::borrow::Cow;

use super::ScanError;

/// Replaces the escapes in the content of a string, after the check by the cursor. `offset` is the offset of
/// the content, for the error.
pub(super) fn unescape(content: &[u8], offset: usize) -> Result<Cow<'_, [u8]>, ScanError> {
    let Some(first) = content.iter().position(|&byte| byte == b'\\') else {
        return Ok(Cow::Borrowed(content));
    };
    let mut text = Vec::with_capacity(content.len());
    text.extend_from_slice(&content[..first]);
    let mut at = first;
    while let Some(&byte) = content.get(at) {
        if byte != b'\\' {
            text.push(byte);
            at += 1;
            continue;
        }
        match content.get(at + 1) {
            Some(b'u') => {
                let (letter, length) =
                    unicode(&content[at..]).ok_or(ScanError::syntax(offset + at, "a pair of surrogates"))?;
                text.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                at += length;
                continue;
            }
            Some(b'b') => text.push(0x08),
            Some(b'f') => text.push(0x0C),
            Some(b'n') => text.push(b'\n'),
            Some(b'r') => text.push(b'\r'),
            Some(b't') => text.push(b'\t'),
            Some(&other) => text.push(other),
            None => {}
        }
        at += 2;
    }
    Ok(Cow::Owned(text))
}

/// Returns the character of a `\uXXXX` escape or of a surrogate pair, and the length of the escapes.
fn unicode(escape: &[u8]) -> Option<(char, usize)> {
    let first = code_unit(escape)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Some((char::from_u32(first)?, 6));
    }
    let second = code_unit(escape.get(6..)?)?;
    if !(0xDC00..0xE000).contains(&second) {
        return None;
    }
    Some((char::from_u32(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))?, 12))
}

fn code_unit(escape: &[u8]) -> Option<u32> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    digits.iter().try_fold(0, |unit, &digit| Some(unit << 4 | char::from(digit).to_digit(16)?))
}
