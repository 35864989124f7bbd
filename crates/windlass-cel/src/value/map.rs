//! Maps and objects.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value as Json;

use super::json::{dynamic, of_schema};
use super::{Text, Value};
use crate::error::Error;
use crate::escape::unescape;
use crate::schema::{Form, Schema};

/// The entries of a map that the evaluation made, in the order of the keys.
#[derive(Clone, Default)]
pub struct Entries<'a>(Vec<(Key<'a>, Value<'a>)>);

/// The key of a map that the evaluation made.
#[derive(Clone, Debug)]
pub enum Key<'a> {
    /// A boolean.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    Uint(u64),
    /// A text.
    String(Text<'a>),
}

/// A map, or an object.
#[derive(Clone)]
pub enum Map<'a> {
    /// Values that the evaluation made.
    Values(Arc<Entries<'a>>),
    /// Members of JSON that have a schema: that of the object.
    Json(&'a serde_json::Map<String, Json>, &'a Schema),
    /// Members of JSON without a schema.
    Dynamic(&'a serde_json::Map<String, Json>),
}

impl<'a> Key<'a> {
    /// Returns the key for a value.
    pub(crate) fn of(value: &Value<'a>) -> Option<Self> {
        Some(match value {
            Value::Bool(value) => Self::Bool(*value),
            Value::Int(value) => Self::Int(*value),
            Value::Uint(value) => Self::Uint(*value),
            Value::String(text) => Self::String(text.clone()),
            _ => return None,
        })
    }

    pub(crate) fn into_value(self) -> Value<'a> {
        match self {
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::Uint(value) => Value::Uint(value),
            Self::String(text) => Value::String(text),
        }
    }
}

impl Key<'_> {
    fn compare(&self, other: &Key<'_>) -> Ordering {
        match (self, other) {
            (Self::Bool(a), Key::Bool(b)) => a.cmp(b),
            (Self::Int(a), Key::Int(b)) => a.cmp(b),
            (Self::Uint(a), Key::Uint(b)) => a.cmp(b),
            (Self::String(a), Key::String(b)) => (**a).cmp(&**b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Bool(_) => 0,
            Self::Int(_) => 1,
            Self::Uint(_) => 2,
            Self::String(_) => 3,
        }
    }
}

impl<'a> Entries<'a> {
    fn find(&self, key: &Key<'_>) -> Result<usize, usize> {
        self.0.binary_search_by(|(known, _)| known.compare(key))
    }

    /// Inserts an entry, and returns the number of entries that were moved. An entry with the same key is replaced.
    pub fn insert(&mut self, key: Key<'a>, value: Value<'a>) -> usize {
        match self.find(&key) {
            Ok(at) => {
                self.0[at].1 = value;
                0
            }
            Err(at) => {
                self.0.insert(at, (key, value));
                self.0.len() - at
            }
        }
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, key: &Key<'_>) {
        if let Ok(at) = self.find(key) {
            self.0.remove(at);
        }
    }

    /// Returns whether there is an entry with the key.
    pub(crate) fn contains(&self, key: &Key<'_>) -> bool {
        self.find(key).is_ok()
    }
}

impl<'a> Map<'a> {
    pub(crate) fn of(entries: Entries<'a>) -> Self {
        Self::Values(Arc::new(entries))
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Values(entries) => entries.0.len(),
            Self::Json(members, _) | Self::Dynamic(members) => members.len(),
        }
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether the map is not a map of JSON with a schema.
    pub(super) fn is_plain(&self) -> bool {
        !matches!(self, Self::Json(..))
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, Error> {
        match (self, key) {
            (Self::Values(entries), key) => Ok(find(entries, key)),
            (_, Value::String(text)) => self.get_text(text),
            (Self::Json(..), _) => Err(Error::no_overload()),
            (Self::Dynamic(_), _) => Ok(None),
        }
    }

    /// Returns the value of a key that is a text; of an object, the name of the field in expressions.
    pub(crate) fn get_text(&self, key: &str) -> Result<Option<Value<'a>>, Error> {
        match self {
            Self::Json(_, Schema { form: Form::Object(_), .. }) if key.contains("__") => {
                match unescape(key) {
                    Some(name) => self.get_field(&name),
                    None => Ok(None),
                }
            }
            Self::Values(entries) => Ok(find(entries, &Value::String(Text::Borrowed(key)))),
            _ => self.get_field(key),
        }
    }

    /// Returns the value of a member, by its name in JSON.
    pub(crate) fn get_field(&self, name: &str) -> Result<Option<Value<'a>>, Error> {
        match self {
            Self::Json(members, schema) => {
                schema.member(members, name).map(|(member, schema)| of_schema(member, schema)).transpose()
            }
            Self::Dynamic(members) => Ok(members.get(name).map(dynamic)),
            Self::Values(_) => self.get_text(name),
        }
    }

    /// Returns the keys.
    pub fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Self::Values(entries) => entries.0.iter().map(|(key, _)| key.clone().into_value()).collect(),
            Self::Dynamic(members) => {
                members.keys().map(|name| Value::String(Text::Borrowed(name))).collect()
            }
            Self::Json(members, schema) => members.keys().filter_map(|name| key_of(name, schema)).collect(),
        }
    }

    /// Returns the entries.
    pub(crate) fn entries(&self) -> Vec<(Value<'a>, Result<Value<'a>, Error>)> {
        let value = |key: &Value<'a>| match self.get(key) {
            Ok(Some(value)) => Ok(value),
            Ok(None) => Err(Error::new(format!("no such key: {key}"))),
            Err(error) => Err(error),
        };
        match self {
            Self::Values(entries) => {
                entries.0.iter().map(|(key, value)| (key.clone().into_value(), Ok(value.clone()))).collect()
            }
            _ => self
                .keys()
                .into_iter()
                .map(|key| {
                    let found = value(&key);
                    (key, found)
                })
                .collect(),
        }
    }
}

/// Returns the key of a member in expressions; members without a schema have none.
fn key_of<'a>(name: &'a str, schema: &'a Schema) -> Option<Value<'a>> {
    match &schema.form {
        Form::Object(_) => {
            let field = schema.field(name)?;
            Some(Value::String(Text::Borrowed(field.escaped.as_deref().unwrap_or(name))))
        }
        _ => Some(Value::String(Text::Borrowed(name))),
    }
}

/// Finds a key, or a number that is equal to the key.
fn find<'a>(entries: &Entries<'a>, key: &Value<'_>) -> Option<Value<'a>> {
    let look_up = |key: Key<'_>| entries.find(&key).ok().map(|at| entries.0[at].1.clone());
    match key {
        Value::Bool(value) => look_up(Key::Bool(*value)),
        Value::String(text) => look_up(Key::String(text.clone())),
        Value::Int(value) => {
            look_up(Key::Int(*value)).or_else(|| look_up(Key::Uint(u64::try_from(*value).ok()?)))
        }
        Value::Uint(value) => {
            look_up(Key::Uint(*value)).or_else(|| look_up(Key::Int(i64::try_from(*value).ok()?)))
        }
        Value::Double(value) if value.fract() == 0.0 => {
            let int = (*value >= i64::MIN as f64 && *value < i64::MAX as f64).then_some(*value as i64);
            int.and_then(|int| look_up(Key::Int(int))).or_else(|| {
                (*value >= 0.0 && *value < u64::MAX as f64)
                    .then(|| look_up(Key::Uint(*value as u64)))
                    .flatten()
            })
        }
        _ => None,
    }
}
