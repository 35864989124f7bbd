//! Values that may be absent.

use super::{as_list, mismatch};
use crate::declare::Row;
use crate::error::Error;
use crate::evaluate::unshare;
use crate::meter::Meter;
use crate::value::{List, Value};

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("optional.of", "optional_of", "V", "optional(V)", |_, v| Ok(Value::some(v[0].clone()))),
    Row("optional.ofNonZeroValue", "optional_ofNonZeroValue", "V", "optional(V)", |_, v| {
        Ok(if v[0].is_zero() { Value::Optional(None) } else { Value::some(v[0].clone()) })
    }),
    Row("optional.none", "optional_none", "", "optional(V)", |_, _| Ok(Value::Optional(None))),
    Row("value", "optional_value", ".optional(V)", "V", |_, v| match &v[0] {
        Value::Optional(Some(value)) => Ok(unshare(value.clone())),
        Value::Optional(None) => Err(Error::fixed("optional.none() dereference")),
        _ => mismatch(),
    }),
    Row("hasValue", "optional_hasValue", ".optional(V)", "bool", |_, v| match &v[0] {
        Value::Optional(value) => Ok(Value::Bool(value.is_some())),
        _ => mismatch(),
    }),
    Row("or", "optional_or_optional", ".optional(V) optional(V)", "optional(V)", or_else),
    Row("orValue", "optional_orValue_value", ".optional(V) V", "V", or_else),
    Row("_?._", "select_optional_field", "dyn string", "optional(V)", or_else),
    Row("_[?_]", "list_optindex_optional_int", "list(V) int", "optional(V)", or_else),
    Row("_[?_]", "optional_list_optindex_optional_int", "optional(list(V)) int", "optional(V)", or_else),
    Row("_[?_]", "map_optindex_optional_value", "map(K, V) K", "optional(V)", or_else),
    Row("_[?_]", "optional_map_optindex_optional_value", "optional(map(K, V)) K", "optional(V)", or_else),
    Row("_[_]", "optional_list_index_int", "optional(list(V)) int", "optional(V)", or_else),
    Row("_[_]", "optional_map_index_value", "optional(map(K, V)) K", "optional(V)", or_else),
    Row("first", "list_first", ".list(V)", "optional(V)", |_, v| nth(v, |_| 0)),
    Row("last", "list_last", ".list(V)", "optional(V)", |_, v| nth(v, |length| length - 1)),
    Row("optional.unwrap", "optional_unwrap", "list(optional(V))", "list(V)", unwrap),
    Row("unwrapOpt", "optional_unwrapOpt", ".list(optional(V))", "list(V)", unwrap),
];

/// Stands for operators and functions that the evaluation itself knows.
fn or_else<'a>(_: &mut Meter, _: &[Value<'a>]) -> Result<Value<'a>, Error> {
    Err(Error::no_overload())
}

fn nth<'a>(arguments: &[Value<'a>], index: fn(usize) -> usize) -> Result<Value<'a>, Error> {
    let list = as_list(&arguments[0])?;
    if list.is_empty() {
        return Ok(Value::Optional(None));
    }
    match list.get(index(list.len())) {
        Some(element) => Ok(Value::some(element?)),
        None => Ok(Value::Optional(None)),
    }
}

fn unwrap<'a>(meter: &mut Meter, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let mut values = Vec::new();
    for element in as_list(&arguments[0])?.iter() {
        meter.elements(1)?;
        match element? {
            Value::Optional(Some(value)) => values.push(unshare(value)),
            Value::Optional(None) => {}
            value => return Err(Error::new(format!("value {value} is not optional"))),
        }
    }
    meter.allocate(values.len() * size_of::<Value<'_>>())?;
    Ok(Value::List(List::of(values)))
}
