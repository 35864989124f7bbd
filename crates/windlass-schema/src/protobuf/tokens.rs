//! The values of a JSON text as ranges of the text. A text is read once, without a copy of a value.

use super::EncodeError;

/// The index of a value in the order of the text. The value of the whole text has the index 0.
pub(super) type Item = u32;

#[derive(Clone, Copy)]
struct Token {
    start: u32,
    end: u32,
    /// The first value after this value and the contents of this value.
    next: Item,
}

/// Reads JSON texts, one after the other. The memory is kept for the next text.
#[derive(Default)]
pub(super) struct Tokens {
    all: Vec<Token>,
    /// The objects and arrays that are not closed.
    open: Vec<Item>,
}

impl Tokens {
    /// Reads a JSON text. The text is trusted to be JSON; a text that is not JSON is read as some values, or is an
    /// error.
    pub(super) fn read<'j>(&'j mut self, text: &'j [u8]) -> Result<Json<'j>, EncodeError> {
        self.all.clear();
        self.open.clear();
        if u32::try_from(text.len()).is_err() {
            return Err(EncodeError::new("the JSON text is larger than 4 GiB"));
        }
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            match byte {
                b'"' => at = self.add(at, end_of_text(text, at + 1)?),
                b'{' | b'[' => {
                    self.open.push(self.all.len() as Item);
                    at = self.add(at, at + 1);
                }
                b'}' | b']' => {
                    at += 1;
                    let next = self.all.len() as Item;
                    let opened = self.open.pop().and_then(|opened| self.all.get_mut(opened as usize));
                    let Some(opened) = opened else { return Err(malformed()) };
                    opened.end = at as u32;
                    opened.next = next;
                }
                b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => at += 1,
                _ => at = self.add(at, end_of_word(text, at)),
            }
        }
        if self.all.is_empty() || !self.open.is_empty() {
            return Err(malformed());
        }
        Ok(Json { text, tokens: &self.all })
    }

    fn add(&mut self, start: usize, end: usize) -> usize {
        let next = self.all.len() as Item + 1;
        self.all.push(Token { start: start as u32, end: end as u32, next });
        end
    }
}

/// Returns the position after the quote that ends a text.
fn end_of_text(json: &[u8], mut at: usize) -> Result<usize, EncodeError> {
    loop {
        let rest = json.get(at..).unwrap_or_default();
        at += memchr::memchr2(b'"', b'\\', rest).ok_or_else(malformed)?;
        if json[at] == b'"' {
            return Ok(at + 1);
        }
        at += 2;
    }
}

/// Returns the position after a number, `true`, `false` or `null`.
fn end_of_word(json: &[u8], at: usize) -> usize {
    let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b':' | b'"' | b' ' | b'\n' | b'\r' | b'\t');
    json[at..].iter().position(is_end).map_or(json.len(), |length| at + length.max(1))
}

fn malformed() -> EncodeError {
    EncodeError::new("the JSON text is malformed")
}

/// A JSON text with the ranges of all values.
#[derive(Clone, Copy)]
pub(super) struct Json<'j> {
    text: &'j [u8],
    tokens: &'j [Token],
}

impl<'j> Json<'j> {
    /// Returns the text of a value; of a string with the quotes.
    pub(super) fn text(self, item: Item) -> &'j [u8] {
        let range = self.tokens.get(item as usize).map(|token| token.start as usize..token.end as usize);
        range.and_then(|range| self.text.get(range)).unwrap_or_default()
    }

    pub(super) fn is_null(self, item: Item) -> bool {
        self.text(item) == b"null"
    }

    /// Returns the values of an array.
    pub(super) fn items(self, array: Item) -> impl Iterator<Item = Item> {
        let end = self.next(array);
        let start = if self.text(array).first() == Some(&b'[') { array + 1 } else { end };
        std::iter::successors(Some(start), move |item| Some(self.next(*item)))
            .take_while(move |item| *item < end)
    }

    /// Returns the names and the values of an object.
    pub(super) fn members(self, object: Item) -> impl Iterator<Item = (Item, Item)> {
        let end = self.next(object);
        let start = if self.text(object).first() == Some(&b'{') { object + 1 } else { end };
        let names = std::iter::successors(Some(start), move |name| Some(self.next(*name + 1)));
        names.map(|name| (name, name + 1)).take_while(move |(_, value)| *value < end)
    }

    /// Returns the value of a member.
    pub(super) fn member(self, object: Item, name: &[u8]) -> Option<Item> {
        let mut members = self.members(object);
        members.find(|(found, _)| unquoted(self.text(*found)) == name).map(|(_, value)| value)
    }

    fn next(self, item: Item) -> Item {
        self.tokens.get(item as usize).map_or(Item::MAX, |token| token.next)
    }
}

/// Returns a text of JSON without the quotes, with the escapes.
pub(super) fn unquoted(text: &[u8]) -> &[u8] {
    match text {
        [b'"', inner @ .., b'"'] => inner,
        other => other,
    }
}
