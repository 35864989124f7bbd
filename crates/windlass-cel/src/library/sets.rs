//! Lists as sets.

use super::as_list;
use crate::declare::Row;
use crate::error::Error;
use crate::meter::Meter;
use crate::value::{List, Value, equal};

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("sets.contains", "list_sets_contains_list", "list(T) list(T)", "bool", |meter, v| {
        Ok(Value::Bool(contains(meter, as_list(&v[0])?, as_list(&v[1])?)?))
    }),
    Row("sets.equivalent", "list_sets_equivalent_list", "list(T) list(T)", "bool", |meter, v| {
        let (one, other) = (as_list(&v[0])?, as_list(&v[1])?);
        Ok(Value::Bool(contains(meter, one, other)? && contains(meter, other, one)?))
    }),
    Row("sets.intersects", "list_sets_intersects_list", "list(T) list(T)", "bool", |meter, v| {
        let (one, other) = (as_list(&v[0])?, as_list(&v[1])?);
        for element in one.iter() {
            if has(meter, other, &element?)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }),
];

/// Returns whether a list has all elements of another list.
fn contains(meter: &mut Meter, list: &List<'_>, part: &List<'_>) -> Result<bool, Error> {
    for element in part.iter() {
        if !has(meter, list, &element?)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has(meter: &mut Meter, list: &List<'_>, wanted: &Value<'_>) -> Result<bool, Error> {
    for element in list.iter() {
        match equal(meter, &element?, wanted) {
            Ok(true) => return Ok(true),
            Err(error) if error.is_fatal() => return Err(error),
            _ => {}
        }
    }
    Ok(false)
}
