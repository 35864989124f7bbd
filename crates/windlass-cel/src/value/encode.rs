//! Values as JSON.

use serde_json::{Map as Members, Number, Value as Json};

use super::{Key, Library, List, Map, Message, Value, duration_text};
use crate::error::Error;

/// The size of the largest JSON that a value may have, in bytes.
const MAX_SIZE: usize = 8 << 20;

/// The largest integer that every reader of JSON reads exactly.
const MAX_SAFE: u64 = (1 << 53) - 1;

/// The form of integers that a floating-point number cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// All integers are numbers.
    Exact,
    /// Such integers are texts.
    Safe,
}

impl Value<'_> {
    /// Returns the value as JSON. Objects that the evaluation made are objects.
    ///
    /// # Errors
    /// The value has a part without a form in JSON, such as a URL or a key that is not a text, or would be larger than 8 MiB.
    pub fn to_json(&self, numbers: Numbers) -> Result<Json, Error> {
        Encoder::new(numbers).value(self)
    }
}

impl Message<'_> {
    /// Returns the object as JSON, as [`Value::to_json`] does.
    ///
    /// # Errors
    /// As [`Value::to_json`].
    pub fn to_json(&self, numbers: Numbers) -> Result<Json, Error> {
        Encoder::new(numbers).message(self)
    }
}

/// Encodes several values as JSON, which together may have 8 MiB.
///
/// ```
/// use windlass_cel::{Encoder, Numbers, Value};
///
/// let mut encoder = Encoder::new(Numbers::Exact);
/// assert_eq!(encoder.value(&Value::Int(1)).unwrap(), 1);
/// ```
#[derive(Debug)]
pub struct Encoder {
    numbers: Numbers,
    /// The JSON of values that have another form than usual.
    instead: fn(&Value<'_>) -> Option<Json>,
    /// The size of the JSON so far, in bytes, roughly.
    size: usize,
}

impl Encoder {
    /// Returns an encoder that has encoded nothing.
    pub fn new(numbers: Numbers) -> Self {
        Self { numbers, instead: |_| None, size: 0 }
    }

    /// Encodes the values for which `instead` returns JSON as that JSON.
    #[must_use]
    pub fn with(self, instead: fn(&Value<'_>) -> Option<Json>) -> Self {
        Self { instead, ..self }
    }

    fn count(&mut self, bytes: usize) -> Result<(), Error> {
        self.size = self.size.saturating_add(bytes);
        if self.size > MAX_SIZE { Err(Error::resource_limit()) } else { Ok(()) }
    }

    /// Returns a value as JSON, as [`Value::to_json`] does.
    ///
    /// # Errors
    /// As [`Value::to_json`]; the size is that of all values until now.
    pub fn value(&mut self, value: &Value<'_>) -> Result<Json, Error> {
        self.count(8)?;
        if let Some(json) = (self.instead)(value) {
            return Ok(json);
        }
        Ok(match value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(value) if self.is_text(value.unsigned_abs()) => Json::String(value.to_string()),
            Value::Int(value) => Json::from(*value),
            Value::Uint(value) if self.is_text(*value) => Json::String(value.to_string()),
            Value::Uint(value) => Json::from(*value),
            Value::Double(value) => double(*value)?,
            Value::String(text) => self.text(text)?,
            Value::Bytes(bytes) => {
                use base64::Engine as _;
                self.count(bytes.len() * 2)?;
                Json::String(base64::engine::general_purpose::STANDARD.encode(bytes))
            }
            Value::Duration(nanos) => Json::String(duration_text(*nanos)),
            Value::Timestamp(timestamp) => Json::String(timestamp.to_string()),
            Value::List(list) => self.list(list)?,
            Value::Map(map) => self.map(map)?,
            Value::Optional(Some(value)) => self.value(value)?,
            Value::Optional(None) => return Err(Error::fixed("optional.none() dereference")),
            Value::Library(Library::Message(message)) => self.message(message)?,
            Value::Library(Library::Preserved(json)) => self.json(json)?,
            Value::Type(_) => return Err(Error::fixed("type conversion not supported for 'type'")),
            Value::Library(_) => {
                let name = value.type_name();
                return Err(Error::new(format!(
                    "unsupported conversion from '{name}' to google.protobuf.Value"
                )));
            }
        })
    }

    fn is_text(&self, size: u64) -> bool {
        self.numbers == Numbers::Safe && size > MAX_SAFE
    }

    fn text(&mut self, text: &str) -> Result<Json, Error> {
        self.count(text.len())?;
        Ok(Json::String(text.to_owned()))
    }

    fn list(&mut self, list: &List<'_>) -> Result<Json, Error> {
        if let List::Dynamic(items) | List::Json(items, _) = list {
            return items.iter().map(|item| self.json(item)).collect();
        }
        let mut items = Vec::new();
        for element in list.iter() {
            items.push(self.value(&element?)?);
        }
        Ok(Json::Array(items))
    }

    fn map(&mut self, map: &Map<'_>) -> Result<Json, Error> {
        let mut members = Members::new();
        if let Map::Dynamic(found) | Map::Json(found, _) = map {
            for (name, value) in *found {
                self.count(name.len())?;
                members.insert(name.clone(), self.json(value)?);
            }
            return Ok(Json::Object(members));
        }
        for (key, value) in map.entries() {
            let Some(Key::String(name)) = Key::of(&key) else {
                let name = key.type_name();
                return Err(Error::new(format!("unsupported type conversion from '{name}' to string")));
            };
            self.count(name.len())?;
            members.insert(name.to_string(), self.value(&value?)?);
        }
        Ok(Json::Object(members))
    }

    /// Returns an object as JSON, as [`Value::to_json`] does.
    ///
    /// # Errors
    /// As [`Encoder::value`].
    pub fn message(&mut self, message: &Message<'_>) -> Result<Json, Error> {
        let mut members = Members::new();
        for (name, value) in message.fields() {
            self.count(name.len())?;
            members.insert(name.to_string(), self.value(value)?);
        }
        Ok(Json::Object(members))
    }

    /// Copies JSON.
    fn json(&mut self, json: &Json) -> Result<Json, Error> {
        self.value(&Value::from_json(json))
    }
}

/// Returns a number without a fraction as an integer, as Go writes the number.
fn double(value: f64) -> Result<Json, Error> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        return Ok(Json::from(value as i64));
    }
    let number = Number::from_f64(value);
    number.map(Json::Number).ok_or_else(|| Error::new(format!("{value} has no form in JSON")))
}
