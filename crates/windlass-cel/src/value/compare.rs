//! Equality and order of values.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::{Library, List, Map, Message, Value};
use crate::error::Error;
use crate::meter::Meter;
use crate::schema::ListKind;

/// Returns whether two values are equal.
pub(crate) fn equal(meter: &mut Meter, one: &Value<'_>, other: &Value<'_>) -> Result<bool, Error> {
    meter.elements(1)?;
    Ok(match (one, other) {
        (Value::Null, Value::Null) => true,
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::String(a), Value::String(b)) => {
            meter.work(a.len().min(b.len()))?;
            **a == **b
        }
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp_instant(b) == Ordering::Equal,
        (Value::Type(a), Value::Type(b)) => a == b,
        (Value::List(a), Value::List(b)) => return equal_lists(meter, a, b),
        (Value::Map(a), Value::Map(b)) => return equal_maps(meter, a, b),
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => return equal(meter, a, b),
            (a, b) => a.is_none() && b.is_none(),
        },
        (Value::Library(Library::Message(a)), Value::Library(Library::Message(b))) => {
            return equal_messages(meter, a, b);
        }
        (Value::Library(a), Value::Library(b)) => return equal_library(a, b),
        (Value::Library(Library::Preserved(a)), b) => to_json(b).is_some_and(|b| **a == b),
        (Value::Library(_), _) => return Err(Error::no_overload()),
        (Value::List(List::Json(..)) | Value::Map(Map::Json(..)), _) => return Err(Error::no_overload()),
        _ => is_number(one) && is_number(other) && numbers(one, other) == Some(Ordering::Equal),
    })
}

fn is_number(value: &Value<'_>) -> bool {
    matches!(value, Value::Int(_) | Value::Uint(_) | Value::Double(_))
}

/// Compares two numbers; `None` if one is not a number.
fn numbers(one: &Value<'_>, other: &Value<'_>) -> Option<Ordering> {
    match (one, other) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Int(a), Value::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), Value::Int(b)) => double_int(*a, *b),
        (Value::Int(a), Value::Double(b)) => double_int(*b, *a).map(Ordering::reverse),
        (Value::Double(a), Value::Uint(b)) => double_uint(*a, *b),
        (Value::Uint(a), Value::Double(b)) => double_uint(*b, *a).map(Ordering::reverse),
        _ => None,
    }
}

fn double_int(double: f64, int: i64) -> Option<Ordering> {
    if double < i64::MIN as f64 {
        Some(Ordering::Less)
    } else if double > i64::MAX as f64 {
        Some(Ordering::Greater)
    } else {
        double.partial_cmp(&(int as f64))
    }
}

fn double_uint(double: f64, uint: u64) -> Option<Ordering> {
    if double < 0.0 {
        Some(Ordering::Less)
    } else if double > u64::MAX as f64 {
        Some(Ordering::Greater)
    } else {
        double.partial_cmp(&(uint as f64))
    }
}

/// Orders two values.
pub(crate) fn compare(meter: &mut Meter, one: &Value<'_>, other: &Value<'_>) -> Result<Ordering, Error> {
    meter.elements(1)?;
    match (one, other) {
        (Value::Bool(a), Value::Bool(b)) => Ok(a.cmp(b)),
        (Value::String(a), Value::String(b)) => {
            meter.work(a.len().min(b.len()))?;
            Ok((**a).cmp(&**b))
        }
        (Value::Bytes(a), Value::Bytes(b)) => Ok(a.cmp(b)),
        (Value::Duration(a), Value::Duration(b)) => Ok(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Ok(a.cmp_instant(b)),
        _ if is_number(one) && is_number(other) => {
            numbers(one, other).ok_or(Error::fixed("NaN values cannot be ordered"))
        }
        _ => Err(Error::no_overload()),
    }
}

fn equal_lists(meter: &mut Meter, one: &List<'_>, other: &List<'_>) -> Result<bool, Error> {
    if one.len() != other.len() {
        return Ok(false);
    }
    match one.kind() {
        ListKind::Set => return equal_sets(meter, one, other),
        ListKind::Map(keys) => {
            if let Some(equal) = equal_by_keys(meter, one, other, keys)? {
                return Ok(equal);
            }
        }
        ListKind::Atomic => {}
    }
    let ordered = matches!(one, List::Json(..));
    for (a, b) in one.iter().zip(other.iter()) {
        match equal(meter, &a?, &b?) {
            Ok(true) => {}
            Ok(false) => return Ok(false),
            Err(error) if ordered || error.is_fatal() => return Err(error),
            Err(_) => {}
        }
    }
    Ok(true)
}

/// Returns whether the first list, a set, has each element of the second list.
fn equal_sets(meter: &mut Meter, one: &List<'_>, other: &List<'_>) -> Result<bool, Error> {
    meter.elements(one.len() + other.len())?;
    let mut texts = |list: &List<'_>| -> Result<Vec<String>, Error> {
        let text = |item: Result<Value<'_>, Error>| {
            let text = to_json(&item?).map(|json| json.to_string()).unwrap_or_default();
            meter.work(text.len()).map(|()| text)
        };
        list.iter().map(text).collect()
    };
    let known: HashSet<String> = texts(one)?.into_iter().collect();
    Ok(texts(other)?.iter().all(|text| known.contains(text)))
}

/// Compares lists whose elements are identified by fields. `None` if an element is no object of JSON.
fn equal_by_keys(
    meter: &mut Meter,
    one: &List<'_>,
    other: &List<'_>,
    keys: &[Box<str>],
) -> Result<Option<bool>, Error> {
    meter.elements(one.len() + other.len())?;
    let mut known = HashMap::new();
    for item in one.iter() {
        let item = item?;
        let Some(key) = key_of(&item, keys) else { return Ok(None) };
        meter.work(key.len())?;
        known.insert(key, item);
    }
    for item in other.iter() {
        let item = item?;
        let Some(key) = key_of(&item, keys) else { return Ok(None) };
        meter.work(key.len())?;
        let Some(mine) = known.get(&key) else { return Ok(Some(false)) };
        if !equal(meter, mine, &item)? {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

/// Returns the values of the fields that identify an element, as a text. `None` if the element is no object of JSON.
fn key_of(value: &Value<'_>, keys: &[Box<str>]) -> Option<String> {
    let Value::Map(Map::Json(members, _) | Map::Dynamic(members)) = value else { return None };
    let values = keys.iter().map(|key| members.get(&**key).cloned().unwrap_or(Json::Null));
    Some(values.collect::<Json>().to_string())
}

/// Adds the elements of a list to a set, or to a list whose elements have keys. `None` if the first list is neither.
pub(crate) fn merge<'a>(
    meter: &mut Meter,
    one: &List<'a>,
    other: &List<'a>,
) -> Result<Option<List<'a>>, Error> {
    let (List::Json(_, schema) | List::Merged(_, schema)) = one else { return Ok(None) };
    let identity = |value: &Value<'_>| match one.kind() {
        ListKind::Map(keys) => key_of(value, keys),
        _ => to_json(value).map(|json| json.to_string()),
    };
    if *one.kind() == ListKind::Atomic {
        return Ok(None);
    }
    meter.elements(one.len() + other.len())?;
    meter.allocate((one.len() + other.len()) * size_of::<Value<'_>>())?;
    let replaces = matches!(one.kind(), ListKind::Map(_));
    let mut merged: Vec<Value<'a>> = one.iter().collect::<Result<_, Error>>()?;
    let mut known: HashMap<String, usize> = HashMap::new();
    for (index, value) in merged.iter().enumerate() {
        let Some(identity) = identity(value) else { return Ok(None) };
        meter.work(identity.len())?;
        known.insert(identity, index);
    }
    for value in other.iter() {
        let value = value?;
        let Some(identity) = identity(&value) else { return Ok(None) };
        meter.work(identity.len())?;
        match known.get(&identity) {
            Some(at) if replaces => merged[*at] = value,
            Some(_) => {}
            None => {
                // Go's list with keys appends an element again that it has appended already.
                if !replaces {
                    known.insert(identity, merged.len());
                }
                merged.push(value);
            }
        }
    }
    Ok(Some(List::Merged(Arc::new(merged), schema)))
}

fn equal_maps(meter: &mut Meter, one: &Map<'_>, other: &Map<'_>) -> Result<bool, Error> {
    if one.len() != other.len() {
        return Ok(false);
    }
    for (key, value) in one.entries() {
        // A search for the key takes longer than the comparison of an element.
        meter.elements(4)?;
        let theirs = other.get(&key)?;
        let Some(theirs) = theirs else {
            // A null member of an object is absent on both sides.
            if matches!(one, Map::Json(..)) && value.is_err() {
                continue;
            }
            return Ok(false);
        };
        if !equal(meter, &value?, &theirs)? {
            return Ok(false);
        }
    }
    if let (Map::Json(mine, schema), Map::Json(theirs, _)) = (one, other) {
        let unknown = |name: &str| schema.field(name).is_none();
        let objects = matches!(schema.form, crate::schema::Form::Object(_));
        let differs = mine
            .iter()
            .filter(|(name, _)| objects && unknown(name))
            .any(|(name, value)| theirs.get(name).is_some_and(|theirs| theirs != value));
        return Ok(!differs);
    }
    Ok(true)
}

fn equal_messages(meter: &mut Meter, one: &Message<'_>, other: &Message<'_>) -> Result<bool, Error> {
    if one.name() != other.name() || one.fields().len() != other.fields().len() {
        return Ok(false);
    }
    for (name, value) in one.fields() {
        match other.field(name) {
            Some(theirs) if equal(meter, value, theirs)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

fn equal_library(one: &Library<'_>, other: &Library<'_>) -> Result<bool, Error> {
    Ok(match (one, other) {
        (Library::Ip(a), Library::Ip(b)) => a == b,
        (Library::Cidr(a), Library::Cidr(b)) => a == b,
        (Library::Url(a), Library::Url(b)) => a.to_string() == b.to_string(),
        (Library::Quantity(a), Library::Quantity(b)) => a.quantity == b.quantity,
        (Library::Semver(a), Library::Semver(b)) => a.cmp(b) == Ordering::Equal,
        (Library::Format(a), Library::Format(b)) => a.name == b.name,
        (Library::Check(a), Library::Check(b)) => a == b,
        (Library::Preserved(a), Library::Preserved(b)) => a == b,
        (Library::Composition(_), Library::Composition(_)) => true,
        _ => return Err(Error::no_overload()),
    })
}

/// Returns the JSON of a value, if the value is plain data.
fn to_json(value: &Value<'_>) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => Json::from(*value),
        Value::Uint(value) => Json::from(*value),
        Value::Double(value) => Json::from(*value),
        Value::String(text) => Json::from(&**text),
        Value::List(List::Json(items, _) | List::Dynamic(items)) => Json::from(items.to_vec()),
        Value::Map(Map::Json(members, _) | Map::Dynamic(members)) => Json::Object((*members).clone()),
        Value::Library(Library::Preserved(json)) => (*json).clone(),
        _ => return None,
    })
}
