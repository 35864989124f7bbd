//! Encodes JSON in Kubernetes' protobuf, byte for byte as Go does: the fields of a message are sorted by number, and a
//! field that is no pointer in Go is always written.

use serde_json::Value;

use super::backward::Backward;
use super::tokens::{Item, Json, unquoted};
use super::wire::WireType;
use super::{EncodeError, EncodeResult as Result};
use crate::go::{decode_base64, json_type};
use crate::graph::NamedNodes;
use crate::graph::message::{Field, Form, Message, Part, ValueForm};
use crate::timestamp;

/// The maximum nesting of messages; objects that nest deeper are an error.
const MAX_DEPTH: usize = 500;

/// Marks a field of a message that the JSON does not have.
const ABSENT: Item = Item::MAX;

/// Encodes the values of a JSON text.
pub(super) struct Encoder<'e> {
    pub(super) definitions: &'e dyn NamedNodes,
    pub(super) json: Json<'e>,
    pub(super) out: &'e mut Backward,
    /// The values of the fields of the open messages, and the items of the open lists.
    pub(super) stack: &'e mut Vec<Item>,
    pub(super) depth: usize,
}

impl Encoder<'_> {
    /// Writes the message of a definition. The fields of an absent value are empty.
    pub(super) fn message(&mut self, definition: u32, item: Option<Item>) -> Result<()> {
        let Some(message) = self.definitions.message(definition) else {
            return Err(EncodeError::new("the definition has no protobuf message"));
        };
        if self.depth == MAX_DEPTH {
            return Err(EncodeError::new("exceeded max depth"));
        }
        let base = self.stack.len();
        self.stack.resize(base + message.fields.len(), ABSENT);
        if let Some(item) = item {
            self.find_fields(message, item, base)?;
        }
        self.depth += 1;
        self.parts(&message.parts, &message.fields, base)?;
        self.depth -= 1;
        self.stack.truncate(base);
        Ok(())
    }

    /// Stores the value of each field of an object in the stack, from `base` on. A null is an absent value.
    fn find_fields(&mut self, message: &Message, object: Item, base: usize) -> Result<()> {
        if self.json.text(object).first() != Some(&b'{') {
            return Err(self.mismatch(object, "a message"));
        }
        let mut next = 0;
        for (name, value) in self.json.members(object) {
            let field = message.position(unquoted(self.json.text(name)), &mut next);
            if let Some(field) = field.filter(|_| !self.json.is_null(value)) {
                self.stack[base + field] = value;
            }
        }
        Ok(())
    }

    fn parts(&mut self, parts: &[Part], fields: &[Field], base: usize) -> Result<()> {
        for part in parts.iter().rev() {
            match part {
                Part::Field(index) => {
                    let item = Some(self.stack[base + index]).filter(|item| *item != ABSENT);
                    self.field(&fields[*index], item)?;
                }
                Part::Inlined { number, parts } => {
                    let end = self.out.len();
                    self.parts(parts, fields, base)?;
                    self.out.head(*number, end);
                }
            }
        }
        Ok(())
    }

    fn field(&mut self, field: &Field, item: Option<Item>) -> Result<()> {
        match (&field.form, item) {
            (Form::One(form), Some(_)) => self.value(field.number, form, item),
            (Form::One(form), None) if !field.is_optional => self.value(field.number, form, None),
            (Form::Repeated(form), Some(list)) => self.list(field.number, form, list),
            (Form::Map(form), Some(map)) => self.map(field.number, form, map),
            (_, None) => Ok(()),
        }
    }

    /// Writes a field for each item of an array.
    fn list(&mut self, number: u32, form: &ValueForm, list: Item) -> Result<()> {
        let base = self.stack.len();
        self.stack.extend(self.json.items(list));
        while self.stack.len() > base {
            let item = self.stack.pop().filter(|item| !self.json.is_null(*item));
            match (form, item) {
                // An absent list of bytes or of items is nil in Go. An item of a list is written, even if the item is nil.
                (ValueForm::Bytes | ValueForm::List(..), None) => self.out.field(number, &[]),
                _ => self.value(number, form, item)?,
            }
        }
        Ok(())
    }

    /// Writes a field for each entry of a map, sorted by key.
    fn map(&mut self, number: u32, form: &ValueForm, map: Item) -> Result<()> {
        let base = self.stack.len();
        self.stack.extend(self.json.members(map).flat_map(|(key, value)| [key, value]));
        self.sort_entries(base)?;
        while self.stack.len() > base + 1 {
            let value = self.stack.pop().filter(|value| !self.json.is_null(*value));
            let key = self.stack.pop();
            let end = self.out.len();
            match (form, value) {
                (ValueForm::List(..), None) => self.out.field(2, &[]),
                _ => self.value(2, form, value)?,
            }
            self.value(1, &ValueForm::String, key)?;
            self.out.head(number, end);
        }
        self.stack.truncate(base);
        Ok(())
    }

    /// Sorts the entries on the stack by key. Maps that this project writes are sorted already.
    fn sort_entries(&mut self, base: usize) -> Result<()> {
        let json = self.json;
        let keys = self.stack[base..].iter().step_by(2).map(|key| json.text(*key));
        let is_plain = |key: &[u8]| memchr::memchr(b'\\', key).is_none();
        if keys.clone().is_sorted() && keys.clone().all(is_plain) {
            return Ok(());
        }
        let mut entries = Vec::new();
        for entry in self.stack[base..].chunks_exact(2) {
            entries.push((unescaped(json.text(entry[0]))?, entry[0], entry[1]));
        }
        entries.sort();
        self.stack.truncate(base);
        self.stack.extend(entries.iter().flat_map(|(_, key, value)| [key, value]));
        Ok(())
    }

    /// Writes a field with a value; without an item, with the zero value. Bytes and lists without an item are not
    /// written.
    fn value(&mut self, number: u32, form: &ValueForm, item: Option<Item>) -> Result<()> {
        let end = self.out.len();
        match form {
            ValueForm::Bool => {
                let value = item.is_some_and(|item| self.json.text(item) == b"true");
                self.out.varint(u64::from(value));
                self.out.key(number, WireType::Varint);
                return Ok(());
            }
            ValueForm::Int => {
                let value = item.map_or(Ok(0), |item| self.integer(item))?;
                self.out.varint(value as u64);
                self.out.key(number, WireType::Varint);
                return Ok(());
            }
            ValueForm::Double => {
                let value = item.map_or(Ok(0.0), |item| self.number::<f64>(item))?;
                self.out.bytes(&value.to_le_bytes());
                self.out.key(number, WireType::Fixed64);
                return Ok(());
            }
            ValueForm::Bytes | ValueForm::List(..) if item.is_none() => return Ok(()),
            ValueForm::String => self.string(item)?,
            ValueForm::Bytes => self.bytes(item)?,
            ValueForm::Time => self.time(item, false)?,
            ValueForm::MicroTime => self.time(item, true)?,
            ValueForm::Quantity => self.quantity(item)?,
            ValueForm::IntOrString => self.int_or_string(item)?,
            ValueForm::Raw => {
                if let Some(item) = item {
                    self.out.field(1, self.json.text(item));
                }
            }
            ValueForm::Message(definition) => self.message(*definition, item)?,
            ValueForm::SchemaOrBool(definition) => self.schema_or_bool(*definition, item)?,
            ValueForm::SchemaOrArray(definition) => {
                self.schema_or(*definition, &ValueForm::Message(*definition), item)?;
            }
            ValueForm::SchemaOrStrings(definition) => {
                self.schema_or(*definition, &ValueForm::String, item)?;
            }
            ValueForm::List(inner, form) => item.map_or(Ok(()), |item| self.list(*inner, form, item))?,
        }
        self.out.head(number, end);
        Ok(())
    }

    fn string(&mut self, item: Option<Item>) -> Result<()> {
        let Some(item) = item else { return Ok(()) };
        match self.json.text(item) {
            [b'"', inner @ .., b'"'] if memchr::memchr(b'\\', inner).is_none() => self.out.bytes(inner),
            text @ [b'"', ..] => self.out.bytes(unescaped(text)?.as_bytes()),
            _ => return Err(self.mismatch(item, "a string")),
        }
        Ok(())
    }

    fn bytes(&mut self, item: Option<Item>) -> Result<()> {
        let Some(item) = item else { return Ok(()) };
        let bytes = unescaped(self.json.text(item)).ok().and_then(|text| decode_base64(&text));
        let bytes = bytes.ok_or_else(|| self.mismatch(item, "bytes"))?;
        self.out.bytes(&bytes);
        Ok(())
    }

    fn integer(&self, item: Item) -> Result<i64> {
        self.number(item).or_else(|_| match self.number::<f64>(item)? {
            whole if whole.fract() == 0.0 => Ok(whole as i64),
            _ => Err(self.mismatch(item, "an integer")),
        })
    }

    fn number<T: std::str::FromStr>(&self, item: Item) -> Result<T> {
        let text = std::str::from_utf8(self.json.text(item)).ok();
        text.and_then(|text| text.parse().ok()).ok_or_else(|| self.mismatch(item, "a number"))
    }

    fn time(&mut self, item: Option<Item>, has_micros: bool) -> Result<()> {
        let Some(item) = item else { return Ok(()) };
        let text = std::str::from_utf8(unquoted(self.json.text(item))).ok();
        let time = text.and_then(timestamp::seconds_and_nanos);
        let (seconds, nanos) = time.ok_or_else(|| self.mismatch(item, "a time"))?;
        // Go takes the first second of year 1 for an absent time.
        if (seconds, nanos) == (timestamp::YEAR_1, 0) {
            return Ok(());
        }
        self.out.varint(if has_micros { nanos - nanos % 1000 } else { 0 });
        self.out.key(2, WireType::Varint);
        self.out.varint(seconds as u64);
        self.out.key(1, WireType::Varint);
        Ok(())
    }

    fn quantity(&mut self, item: Option<Item>) -> Result<()> {
        match item.map(|item| self.json.text(item)) {
            Some([b'"', ..]) => self.value(1, &ValueForm::String, item)?,
            number => self.out.field(1, number.unwrap_or(b"0")),
        }
        Ok(())
    }

    fn int_or_string(&mut self, item: Option<Item>) -> Result<()> {
        let is_text = item.is_some_and(|item| self.json.text(item).first() == Some(&b'"'));
        self.value(3, &ValueForm::String, item.filter(|_| is_text))?;
        self.value(2, &ValueForm::Int, item.filter(|_| !is_text))?;
        self.out.varint(u64::from(is_text));
        self.out.key(1, WireType::Varint);
        Ok(())
    }

    /// Writes a schema (field 2) or a boolean (field 1). Go's decoder sets the boolean of a schema.
    fn schema_or_bool(&mut self, definition: u32, item: Option<Item>) -> Result<()> {
        let text = item.map(|item| self.json.text(item)).unwrap_or_default();
        let is_schema = text.first() == Some(&b'{');
        if is_schema {
            self.value(2, &ValueForm::Message(definition), item)?;
        }
        self.out.varint(u64::from(is_schema || text == b"true"));
        self.out.key(1, WireType::Varint);
        Ok(())
    }

    /// Writes a schema (field 1) or an array (field 2).
    fn schema_or(&mut self, definition: u32, form: &ValueForm, item: Option<Item>) -> Result<()> {
        let Some(item) = item else { return Ok(()) };
        match self.json.text(item).first() {
            Some(b'{') => self.value(1, &ValueForm::Message(definition), Some(item)),
            _ => self.list(2, form, item),
        }
    }

    fn mismatch(&self, item: Item, expected: &str) -> EncodeError {
        let found = serde_json::from_slice::<Value>(self.json.text(item)).unwrap_or_default();
        EncodeError::new(format!("cannot encode {} as {expected}", json_type(&found)))
    }
}

/// Returns a string of JSON without quotes and escapes.
fn unescaped(text: &[u8]) -> Result<String> {
    serde_json::from_slice(text).map_err(|error| EncodeError::new(error.to_string()))
}
