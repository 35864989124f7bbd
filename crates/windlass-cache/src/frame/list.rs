//! The items of a list.

use bytes::Bytes;
use serde::Deserialize;

use super::{
    BadObject,
    feed::{Feed, Place},
    key_of,
};
use crate::scan::{ScanError, Scanned, Scanner};

/// Finds the items in the body of a list, and what the list says of itself.
#[derive(Debug)]
pub struct ListFramer {
    feed: Feed,
    state: State,
    meta: ListMeta,
}

/// A list's `metadata`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListMeta {
    /// The state of the cluster that the list shows.
    #[serde(deserialize_with = "text_or_null")]
    pub resource_version: String,
    /// Continues the list; empty at its end.
    #[serde(rename = "continue", deserialize_with = "text_or_null")]
    pub continue_token: String,
}

fn text_or_null<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// What the list's body is to go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    FirstMember,
    Member,
    Colon(Field),
    Value(Field),
    FirstItem,
    Item,
    BehindItem,
    BehindValue,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Items,
    Metadata,
    Other,
}

/// A step through the body.
enum Step {
    Again,
    Item(Place),
    Bad(BadObject),
}

impl ListFramer {
    /// Refuses items longer than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { feed: Feed::new(limit), state: State::Start, meta: ListMeta::default() }
    }

    /// Takes the next piece of the body, when [`Self::next`] has answered `None` for the one before.
    pub fn push(&mut self, piece: Bytes) {
        self.feed.push(piece);
    }

    /// The next item, or `None` when the piece holds no further whole one.
    ///
    /// # Errors
    /// The outer one ends the list: it is not a list. The inner one concerns one item.
    pub fn next<'a>(
        &'a mut self,
        scanner: &'a mut Scanner,
    ) -> Result<Option<Result<Scanned<'a>, BadObject>>, ScanError> {
        loop {
            match self.step(scanner)? {
                None => {
                    self.feed.release();
                    return Ok(None);
                }
                Some(Step::Again) => {}
                Some(Step::Bad(bad)) => return Ok(Some(Err(bad))),
                Some(Step::Item(place)) => return Ok(Some(Ok(scanner.view(self.feed.bytes(&place))))),
            }
        }
    }

    /// What the list says of itself, when the body has ended.
    ///
    /// # Errors
    /// The body ended before the list did.
    pub fn finish(self) -> Result<ListMeta, ScanError> {
        if self.state == State::End { Ok(self.meta) } else { Err(ScanError::Incomplete) }
    }

    fn step(&mut self, scanner: &mut Scanner) -> Result<Option<Step>, ScanError> {
        if self.feed.is_open() {
            return self.value(scanner);
        }
        let Some(byte) = self.feed.peek() else { return Ok(None) };
        let expected = match (self.state, byte) {
            (State::Start, b'{') => return self.pass(State::FirstMember),
            (State::Start, _) => "a list",
            (State::FirstMember | State::BehindValue, b'}') => return self.pass(State::End),
            (State::FirstMember | State::Member, b'"') | (State::Value(_) | State::Item, _) => {
                return self.value(scanner);
            }
            (State::FirstMember | State::Member, _) => "a member name",
            (State::Colon(field), b':') => return self.pass(State::Value(field)),
            (State::Colon(_), _) => "`:`",
            (State::BehindValue, b',') => return self.pass(State::Member),
            (State::BehindValue, _) => "`,` or `}`",
            (State::FirstItem | State::BehindItem, b']') => return self.pass(State::BehindValue),
            (State::FirstItem, _) => return self.value(scanner),
            (State::BehindItem, b',') => return self.pass(State::Item),
            (State::BehindItem, _) => "`,` or `]`",
            (State::End, _) => "the end",
        };
        Err(ScanError::syntax(self.feed.position(), expected))
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is the tail of `step`")]
    fn pass(&mut self, next: State) -> Result<Option<Step>, ScanError> {
        self.feed.advance(1);
        self.state = next;
        Ok(Some(Step::Again))
    }

    /// Goes on with the value that begins here or began in an earlier piece.
    fn value(&mut self, scanner: &mut Scanner) -> Result<Option<Step>, ScanError> {
        if !self.feed.is_open() {
            match self.state {
                State::Item | State::FirstItem => {
                    let start = self.feed.position();
                    if let Ok(length) = scanner.index(self.feed.rest()) {
                        self.feed.advance(length);
                        self.state = State::BehindItem;
                        return Ok(Some(Step::Item(Place::Piece(start..start + length))));
                    }
                }
                State::Value(Field::Items) if self.feed.peek() == Some(b'[') => {
                    return self.pass(State::FirstItem);
                }
                _ => {}
            }
        }
        let Some(place) = self.feed.value()? else { return Ok(None) };
        let bytes = self.feed.bytes(&place);
        match self.state {
            State::FirstMember | State::Member => {
                let field = match serde_json::from_slice::<String>(bytes).as_deref() {
                    Ok("items") => Field::Items,
                    Ok("metadata") => Field::Metadata,
                    Ok(_) => Field::Other,
                    Err(_) => return Err(ScanError::syntax(self.feed.position(), "a member name")),
                };
                self.state = State::Colon(field);
            }
            State::Item | State::FirstItem => {
                self.state = State::BehindItem;
                return Ok(Some(match scanner.index(bytes) {
                    Ok(_) => Step::Item(place),
                    Err(error) => Step::Bad(BadObject::new(error, key_in(bytes))),
                }));
            }
            State::Value(Field::Metadata) => {
                let metadata = serde_json::from_slice::<Option<ListMeta>>(bytes);
                let wrong = ScanError::field("the list's metadata", "a ListMeta");
                self.meta = metadata.map_err(|_| wrong)?.unwrap_or_default();
                self.state = State::BehindValue;
            }
            State::Value(Field::Items) if bytes != b"null" => {
                return Err(ScanError::field("items", "an array"));
            }
            _ => self.state = State::BehindValue,
        }
        Ok(Some(Step::Again))
    }
}

fn key_in(item: &[u8]) -> Option<crate::ObjectKey> {
    key_of(&serde_json::from_slice(item).ok()?)
}
