//! String and bytes literals.

/// Returns the length of the string literal at the start of a text, with its prefix and quotes.
pub(super) fn quoted_length(text: &str) -> Option<usize> {
    let raw = text.starts_with(['r', 'R']);
    let body = &text[usize::from(raw)..];
    let quote = body.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let triple: String = std::iter::repeat_n(quote, 3).collect();
    let prefix = usize::from(raw);
    if let Some(rest) = body.strip_prefix(triple.as_str())
        && let Some(length) = end_of(rest, &triple, raw, true)
    {
        return Some(prefix + 3 + length + 3);
    }
    let length = end_of(&body[1..], &triple[..1], raw, false)?;
    Some(prefix + 1 + length + 1)
}

/// Returns the offset of the closing quotes.
fn end_of(text: &str, quotes: &str, raw: bool, multiline: bool) -> Option<usize> {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        if rest.starts_with(quotes) {
            return Some(at);
        }
        let character = rest.chars().next()?;
        if !multiline && matches!(character, '\n' | '\r') {
            return None;
        }
        at += match character {
            '\\' if !raw => escape_length(&rest[1..])? + 1,
            other => other.len_utf8(),
        };
    }
}

/// Returns the length of the begin of a string literal that does not end: up to a line feed or a wrong escape sequence.
pub(super) fn begun_length(text: &str) -> usize {
    let mut at = 1;
    while let Some(character) = text[at..].chars().next() {
        at += match character {
            '\n' | '\r' => return at,
            '\\' => match escape_length(&text[at + 1..]) {
                Some(length) => 1 + length,
                None => return at + 1 + begun_escape_length(&text[at + 1..]),
            },
            other => other.len_utf8(),
        };
    }
    at
}

/// Returns the length of the begin of a wrong escape sequence, after the backslash.
fn begun_escape_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let fitting = |fits: fn(&u8) -> bool| bytes[1..].iter().take_while(|byte| fits(byte)).count();
    match bytes.first() {
        Some(b'x' | b'X' | b'u' | b'U') => 1 + fitting(u8::is_ascii_hexdigit),
        Some(b'0'..=b'3') => 1 + fitting(|byte| (b'0'..=b'7').contains(byte)),
        _ => 0,
    }
}

/// Returns the length of the escape sequence after a backslash.
fn escape_length(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let hex = |count: usize| {
        let digits = bytes.get(1..=count)?;
        digits.iter().all(u8::is_ascii_hexdigit).then_some(count + 1)
    };
    match bytes.first()? {
        b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`' => Some(1),
        b'x' | b'X' => hex(2),
        b'u' => hex(4),
        b'U' => hex(8),
        b'0'..=b'3' => {
            let digits = bytes.get(1..3)?;
            digits.iter().all(|byte| (b'0'..=b'7').contains(byte)).then_some(3)
        }
        _ => None,
    }
}

/// Returns the text of a string literal.
pub(super) fn unquote(literal: &str) -> Result<String, &'static str> {
    let bytes = unescape(literal, false)?;
    String::from_utf8(bytes).map_err(|_| "invalid unicode code point")
}

/// Returns the bytes of a bytes literal, which has no `b` here.
pub(super) fn unquote_bytes(literal: &str) -> Result<Vec<u8>, &'static str> {
    unescape(literal, true)
}

fn unescape(literal: &str, bytes: bool) -> Result<Vec<u8>, &'static str> {
    let literal = literal.replace("\r\n", "\n").replace('\r', "\n");
    let raw = literal.starts_with(['r', 'R']);
    let body = &literal[usize::from(raw)..];
    let triple = body.len() >= 6 && (body.starts_with("\"\"\"") || body.starts_with("'''"));
    let quotes = if triple { 3 } else { 1 };
    let inner = body.get(quotes..body.len() - quotes).ok_or("unable to unescape string")?;
    if raw || !inner.contains('\\') {
        return Ok(inner.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(character) = rest.chars().next() {
        if character != '\\' {
            rest = &rest[character.len_utf8()..];
            out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            continue;
        }
        let length = escape_length(&rest[1..]).ok_or("unable to unescape string")?;
        let sequence = &rest[1..=length];
        rest = &rest[length + 1..];
        push_escape(&mut out, sequence, bytes)?;
    }
    Ok(out)
}

fn push_escape(out: &mut Vec<u8>, sequence: &str, bytes: bool) -> Result<(), &'static str> {
    let first = sequence.as_bytes()[0];
    let code = match first {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => 10,
        b'r' => 13,
        b't' => 9,
        b'v' => 11,
        b'x' | b'X' => u32::from_str_radix(&sequence[1..], 16).unwrap_or(u32::MAX),
        b'u' | b'U' if bytes => return Err("unable to unescape string"),
        b'u' | b'U' => u32::from_str_radix(&sequence[1..], 16).unwrap_or(u32::MAX),
        b'0'..=b'3' => u32::from_str_radix(sequence, 8).unwrap_or(u32::MAX),
        other => u32::from(other),
    };
    if bytes {
        out.push(code as u8);
        return Ok(());
    }
    let character = char::from_u32(code).ok_or("invalid unicode code point")?;
    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    Ok(())
}
