//! The items of a list.

use bytes::Bytes;
use serde::Deserialize;

use super::{
    UnreadableObject,
    buffer::{Buffer, Location},
    key_in,
};
use crate::{
    scan::ScanError,
    scanner::{Scanned, Scanner},
};

/// Finds the items and the metadata in the body of a list.
#[derive(Debug)]
pub struct ListFramer {
    buffer: Buffer,
    state: State,
    meta: ListMeta,
}

/// The `metadata` of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListMeta {
    /// The resource version of the list.
    #[serde(deserialize_with = "text_or_null")]
    pub resource_version: String,
    /// The token of the next page; empty on the last page.
    #[serde(rename = "continue", deserialize_with = "text_or_null")]
    pub continue_token: String,
}

fn text_or_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// The part of the list that the parser expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    FirstMember,
    Member,
    Colon(Field),
    Value(Field),
    FirstItem,
    Item,
    AfterItem,
    AfterValue,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Items,
    Metadata,
    Other,
}

/// The result of a step of the parser.
enum Parsed {
    Part,
    Item(Location),
    BadItem(UnreadableObject),
}

impl ListFramer {
    /// Creates a framer that rejects items longer than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { buffer: Buffer::new(limit), state: State::Start, meta: ListMeta::default() }
    }

    /// Takes the next piece of the body. [`Self::next`] must have returned `None` for the previous piece.
    pub fn push(&mut self, piece: Bytes) {
        self.buffer.push(piece);
    }

    /// Returns the next item, or `None` if the piece has no further complete item.
    ///
    /// # Errors
    /// The outer error is final: the body is not a list. The inner error concerns one item.
    pub fn next<'a>(
        &'a mut self,
        scanner: &'a mut Scanner,
    ) -> Result<Option<Result<Scanned<'a>, UnreadableObject>>, ScanError> {
        loop {
            match self.step(scanner)? {
                None => {
                    self.buffer.release();
                    return Ok(None);
                }
                Some(Parsed::Part) => {}
                Some(Parsed::BadItem(bad)) => return Ok(Some(Err(bad))),
                Some(Parsed::Item(location)) => {
                    return Ok(Some(Ok(scanner.view(self.buffer.bytes(&location)))));
                }
            }
        }
    }

    /// Returns the metadata when the body has ended.
    ///
    /// # Errors
    /// The body ended before the list did.
    pub fn finish(self) -> Result<ListMeta, ScanError> {
        if self.state == State::End { Ok(self.meta) } else { Err(ScanError::Incomplete) }
    }

    fn step(&mut self, scanner: &mut Scanner) -> Result<Option<Parsed>, ScanError> {
        if self.buffer.is_open() {
            return self.value(scanner);
        }
        let Some(byte) = self.buffer.peek() else { return Ok(None) };
        let expected = match (self.state, byte) {
            (State::Start, b'{') => return self.pass(State::FirstMember),
            (State::Start, _) => "a list",
            (State::FirstMember | State::AfterValue, b'}') => return self.pass(State::End),
            (State::FirstMember | State::Member, b'"') | (State::Value(_) | State::Item, _) => {
                return self.value(scanner);
            }
            (State::FirstMember | State::Member, _) => "a member name",
            (State::Colon(field), b':') => return self.pass(State::Value(field)),
            (State::Colon(_), _) => "`:`",
            (State::AfterValue, b',') => return self.pass(State::Member),
            (State::AfterValue, _) => "`,` or `}`",
            (State::FirstItem | State::AfterItem, b']') => return self.pass(State::AfterValue),
            (State::FirstItem, _) => return self.value(scanner),
            (State::AfterItem, b',') => return self.pass(State::Item),
            (State::AfterItem, _) => "`,` or `]`",
            (State::End, _) => "the end",
        };
        Err(ScanError::syntax(self.buffer.position(), expected))
    }

    #[expect(clippy::unnecessary_wraps, reason = "`step` returns its result")]
    fn pass(&mut self, next: State) -> Result<Option<Parsed>, ScanError> {
        self.buffer.advance(1);
        self.state = next;
        Ok(Some(Parsed::Part))
    }

    /// Continues with the value that begins here or began in an earlier piece.
    fn value(&mut self, scanner: &mut Scanner) -> Result<Option<Parsed>, ScanError> {
        if !self.buffer.is_open() {
            match self.state {
                State::Item | State::FirstItem => {
                    let start = self.buffer.position();
                    if let Ok(length) = scanner.index(self.buffer.rest()) {
                        self.buffer.advance(length);
                        self.state = State::AfterItem;
                        return Ok(Some(Parsed::Item(Location::Piece(start..start + length))));
                    }
                }
                State::Value(Field::Items) if self.buffer.peek() == Some(b'[') => {
                    return self.pass(State::FirstItem);
                }
                _ => {}
            }
        }
        let Some(location) = self.buffer.value()? else { return Ok(None) };
        let bytes = self.buffer.bytes(&location);
        match self.state {
            State::FirstMember | State::Member => {
                let field = match serde_json::from_slice::<String>(bytes).as_deref() {
                    Ok("items") => Field::Items,
                    Ok("metadata") => Field::Metadata,
                    Ok(_) => Field::Other,
                    Err(_) => return Err(ScanError::syntax(self.buffer.position(), "a member name")),
                };
                self.state = State::Colon(field);
            }
            State::Item | State::FirstItem => {
                self.state = State::AfterItem;
                return Ok(Some(match scanner.index(bytes) {
                    Ok(_) => Parsed::Item(location),
                    Err(error) => Parsed::BadItem(UnreadableObject::new(error, key_in(bytes, None))),
                }));
            }
            State::Value(Field::Metadata) => {
                let metadata = serde_json::from_slice::<Option<ListMeta>>(bytes);
                let wrong = ScanError::field("the list's metadata", "a ListMeta");
                self.meta = metadata.map_err(|_| wrong)?.unwrap_or_default();
                self.state = State::AfterValue;
            }
            State::Value(Field::Items) if bytes != b"null" => {
                return Err(ScanError::field("items", "an array"));
            }
            _ => self.state = State::AfterValue,
        }
        Ok(Some(Parsed::Part))
    }
}
