//! Parses label selectors as the API server does.

use std::str::FromStr;

use super::{Operator, Requirement, Selector};

/// A label selector cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid label selector `{selector}`: {reason}")]
pub struct SelectorError {
    selector: String,
    reason: &'static str,
}

impl FromStr for Selector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser { rest: text };
        parser.selector().map_err(|reason| SelectorError { selector: text.to_owned(), reason })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'static str),
    End,
}

struct Parser<'a> {
    rest: &'a str,
}

/// The symbols. A longer symbol precedes its prefixes.
const SYMBOLS: [&str; 9] = ["==", "!=", "=", "!", "(", ")", ",", ">", "<"];

impl<'a> Parser<'a> {
    fn selector(&mut self) -> Result<Selector, &'static str> {
        let mut requirements = Vec::new();
        if self.peek() == Token::End {
            return Ok(Selector::everything());
        }
        loop {
            requirements.push(self.requirement()?);
            match self.next() {
                Token::End => return Ok(requirements.into_iter().collect()),
                Token::Symbol(",") => {}
                _ => return Err("expected `,` or the end of the selector"),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, &'static str> {
        let absent = self.eat("!");
        let key = self.key()?;
        let condition = |operator| Ok(Requirement { key: key.to_owned(), operator });
        if absent {
            return condition(Operator::DoesNotExist);
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return condition(Operator::Exists);
        }
        condition(match self.next() {
            Token::Word("in") => Operator::In(self.values()?),
            Token::Word("notin") => Operator::NotIn(self.values()?),
            Token::Symbol("=" | "==") => Operator::Equals(self.value()?),
            Token::Symbol("!=") => Operator::NotEquals(self.value()?),
            Token::Symbol(">") => Operator::GreaterThan(self.bound()?),
            Token::Symbol("<") => Operator::LessThan(self.bound()?),
            _ => return Err("expected one of in, notin, =, ==, !=, >, < after the label"),
        })
    }

    fn key(&mut self) -> Result<&'a str, &'static str> {
        let Token::Word(key) = self.next() else { return Err("expected a label") };
        let name = match key.split_once('/') {
            None => key,
            Some((prefix, name)) if is_subdomain(prefix) => name,
            Some(_) => return Err("the prefix of a label must be a DNS subdomain in lower case"),
        };
        if name.is_empty() || !is_value(name) {
            return Err(
                "a label name has at most 63 letters, digits, `-`, `_` and `.`, and begins and ends with a \
                 letter or digit",
            );
        }
        Ok(key)
    }

    /// Parses a value, which may be empty.
    fn value(&mut self) -> Result<String, &'static str> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(value) => checked(value),
            _ => Err("expected a value"),
        }
    }

    fn bound(&mut self) -> Result<i64, &'static str> {
        self.value()?.parse().map_err(|_| "expected an integer after `>` or `<`")
    }

    /// Parses `(a,b)`. Values may be empty.
    fn values(&mut self) -> Result<Vec<String>, &'static str> {
        const COMMA: &str = "expected `,` or `)` after a value";
        if !self.eat("(") {
            return Err("expected `(` after in or notin");
        }
        let mut values = Vec::new();
        loop {
            if let Token::Word(value) = self.peek() {
                self.next();
                values.push(checked(value)?);
            } else {
                values.push(String::new());
            }
            match self.next() {
                Token::Symbol(",") => {}
                Token::Symbol(")") => break,
                _ => return Err(COMMA),
            }
        }
        values.sort();
        values.dedup();
        Ok(values)
    }

    fn eat(&mut self, symbol: &'static str) -> bool {
        let found = self.peek() == Token::Symbol(symbol);
        if found {
            self.next();
        }
        found
    }

    fn peek(&mut self) -> Token<'a> {
        let before = self.rest;
        let token = self.next();
        self.rest = before;
        token
    }

    fn next(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start_matches(is_space);
        if self.rest.is_empty() {
            return Token::End;
        }
        for symbol in SYMBOLS {
            if let Some(rest) = self.rest.strip_prefix(symbol) {
                self.rest = rest;
                return Token::Symbol(symbol);
            }
        }
        let end = self.rest.find(|letter| is_space(letter) || "=!(),<>".contains(letter));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        Token::Word(word)
    }
}

fn is_space(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n')
}

fn checked(value: &str) -> Result<String, &'static str> {
    if is_value(value) {
        return Ok(value.to_owned());
    }
    Err(
        "a value has at most 63 letters, digits, `-`, `_` and `.`, and begins and ends with a letter or digit",
    )
}

fn is_value(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return true };
    bytes.len() <= 63
        && first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn is_subdomain(text: &str) -> bool {
    let is_label = |label: &str| {
        let bytes = label.as_bytes();
        let plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        bytes.first().is_some_and(plain)
            && bytes.last().is_some_and(plain)
            && bytes.iter().all(|byte| plain(byte) || *byte == b'-')
    };
    text.len() <= 253 && text.split('.').all(is_label)
}
