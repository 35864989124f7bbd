//! Splits an expression into tokens.

use std::ops::Range;

use super::literal;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    End,
    /// An operator or a bracket.
    Symbol(&'static str),
    In,
    True,
    False,
    Null,
    Identifier,
    /// An identifier in back quotes.
    Escaped,
    Int,
    Uint,
    Double,
    String,
    Bytes,
}

/// A token, and its place in the expression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lexeme {
    pub(super) token: Token,
    pub(super) start: usize,
    pub(super) end: usize,
}

const SYMBOLS: [&str; 27] = [
    "==", "!=", "<=", ">=", "&&", "||", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/", "%", "<", ">", "=", "&", "|",
];

/// Returns the tokens of an expression, and the texts that are no tokens.
pub(super) fn tokens(source: &str) -> (Vec<Lexeme>, Vec<Range<usize>>) {
    let mut lexemes = Vec::new();
    let mut unknown = Vec::new();
    let mut at = 0;
    loop {
        at = skip_blank(source, at);
        if at >= source.len() {
            lexemes.push(Lexeme { token: Token::End, start: source.len(), end: source.len() });
            return (lexemes, unknown);
        }
        match next(source, at) {
            Ok((token, length)) => {
                lexemes.push(Lexeme { token, start: at, end: at + length });
                at += length;
            }
            Err(length) => {
                unknown.push(at..at + length);
                at += length;
            }
        }
    }
}

fn skip_blank(source: &str, mut at: usize) -> usize {
    loop {
        let rest = &source[at..];
        let trimmed = rest.trim_start_matches(['\t', ' ', '\r', '\n', '\u{c}']);
        at += rest.len() - trimmed.len();
        if !trimmed.starts_with("//") {
            return at;
        }
        at += trimmed.find('\n').unwrap_or(trimmed.len());
    }
}

/// Returns the token at an offset with its length, or the length of the text that is no token.
fn next(source: &str, at: usize) -> Result<(Token, usize), usize> {
    let rest = &source[at..];
    let bytes = rest.as_bytes();
    let first = bytes[0];
    if first.is_ascii_digit() || first == b'.' && bytes.get(1).is_some_and(u8::is_ascii_digit) {
        return Ok(number(rest));
    }
    if let Some(length) = literal::quoted_length(rest) {
        return Ok((Token::String, length));
    }
    if matches!(first, b'b' | b'B')
        && let Some(length) = literal::quoted_length(&rest[1..])
    {
        return Ok((Token::Bytes, length + 1));
    }
    if first.is_ascii_alphabetic() || first == b'_' {
        let length = bytes.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let token = match &rest[..length] {
            "in" => Token::In,
            "true" => Token::True,
            "false" => Token::False,
            "null" => Token::Null,
            _ => Token::Identifier,
        };
        return Ok((token, length));
    }
    if first == b'`' {
        let length = bytes[1..].iter().take_while(|byte| is_field_character(char::from(**byte))).count();
        if length > 0 && bytes.get(length + 1) == Some(&b'`') {
            return Ok((Token::Escaped, length + 2));
        }
    }
    // `=`, `&` and `|` alone are no tokens.
    let symbol = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol));
    match symbol {
        Some(symbol) if !matches!(*symbol, "=" | "&" | "|") => Ok((Token::Symbol(symbol), symbol.len())),
        _ => Err(unknown_length(rest)),
    }
}

/// Returns the length of a text that is no token: the characters with which a token could begin, and the first character that does not
/// fit.
fn unknown_length(rest: &str) -> usize {
    let fits = match rest.as_bytes()[0] {
        b'=' | b'&' | b'|' => 1,
        b'"' | b'\'' => literal::begun_length(rest),
        b'`' => 1 + rest[1..].find(|c: char| !is_field_character(c)).unwrap_or(rest.len() - 1),
        _ => 0,
    };
    fits + rest[fits..].chars().next().map_or(0, char::len_utf8)
}

/// Returns whether a name in back quotes may have the character.
fn is_field_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || "_.-/ ".contains(character)
}

/// Returns the number at the start of a text.
fn number(text: &str) -> (Token, usize) {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if let Some(hex) = text.strip_prefix("0x") {
        let count = hex.bytes().take_while(u8::is_ascii_hexdigit).count();
        if count > 0 {
            let length = 2 + count;
            let unsigned = matches!(bytes.get(length), Some(b'u' | b'U'));
            return if unsigned { (Token::Uint, length + 1) } else { (Token::Int, length) };
        }
    }
    let mut length = digits(0);
    let mut token = Token::Int;
    if bytes.get(length) == Some(&b'.') && digits(length + 1) > 0 {
        length += 1 + digits(length + 1);
        token = Token::Double;
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        let exponent = if length + 1 + sign <= bytes.len() { digits(length + 1 + sign) } else { 0 };
        if exponent > 0 {
            length += 1 + sign + exponent;
            token = Token::Double;
        }
    }
    if token == Token::Int && matches!(bytes.get(length), Some(b'u' | b'U')) {
        return (Token::Uint, length + 1);
    }
    (token, length)
}
