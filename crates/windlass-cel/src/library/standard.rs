//! Operators, conversions, and functions of texts and collections.

use std::cmp::Ordering;

use super::{as_text, mismatch};
use crate::declare::Row;
use crate::error::Error;
use crate::meter::Meter;
use crate::value::merge;
use crate::value::{Target, Text, Value, compare, convert, equal, type_of};

type Arguments<'v, 'a> = &'v [Value<'a>];

const DIVISION_BY_ZERO: Error = Error::fixed("division by zero");
const MODULUS_BY_ZERO: Error = Error::fixed("modulus by zero");
const INT_OVERFLOW: Error = Error::fixed("integer overflow");
const UINT_OVERFLOW: Error = Error::fixed("unsigned integer overflow");
const DURATION_OVERFLOW: Error = Error::fixed("duration overflow");

/// The operators: one implementation for all overloads.
#[rustfmt::skip]
pub(super) const OPERATORS: &[Row] = &[
    Row("_?_:_", "conditional", "bool A A", "A", unreachable),
    Row("_&&_", "logical_and", "bool bool", "bool", unreachable),
    Row("_||_", "logical_or", "bool bool", "bool", unreachable),
    Row("!_", "logical_not", "bool", "bool", not),
    Row("@not_strictly_false", "not_strictly_false", "bool", "bool", unreachable),
    Row("_==_", "equals", "A A", "bool", unreachable),
    Row("_!=_", "not_equals", "A A", "bool", unreachable),
    Row("_+_", "add_bytes", "bytes bytes", "bytes", add),
    Row("_+_", "add_double", "double double", "double", add),
    Row("_+_", "add_duration_duration", "duration duration", "duration", add),
    Row("_+_", "add_duration_timestamp", "duration timestamp", "timestamp", add),
    Row("_+_", "add_timestamp_duration", "timestamp duration", "timestamp", add),
    Row("_+_", "add_int64", "int int", "int", add),
    Row("_+_", "add_list", "list(A) list(A)", "list(A)", add),
    Row("_+_", "add_string", "string string", "string", add),
    Row("_+_", "add_uint64", "uint uint", "uint", add),
    Row("_/_", "divide_double", "double double", "double", divide),
    Row("_/_", "divide_int64", "int int", "int", divide),
    Row("_/_", "divide_uint64", "uint uint", "uint", divide),
    Row("_%_", "modulo_int64", "int int", "int", modulo),
    Row("_%_", "modulo_uint64", "uint uint", "uint", modulo),
    Row("_*_", "multiply_double", "double double", "double", multiply),
    Row("_*_", "multiply_int64", "int int", "int", multiply),
    Row("_*_", "multiply_uint64", "uint uint", "uint", multiply),
    Row("-_", "negate_double", "double", "double", negate),
    Row("-_", "negate_int64", "int", "int", negate),
    Row("_-_", "subtract_double", "double double", "double", subtract),
    Row("_-_", "subtract_duration_duration", "duration duration", "duration", subtract),
    Row("_-_", "subtract_int64", "int int", "int", subtract),
    Row("_-_", "subtract_timestamp_duration", "timestamp duration", "timestamp", subtract),
    Row("_-_", "subtract_timestamp_timestamp", "timestamp timestamp", "duration", subtract),
    Row("_-_", "subtract_uint64", "uint uint", "uint", subtract),
    Row("_<_", "less_bool", "bool bool", "bool", less),
    Row("_<_", "less_int64", "int int", "bool", less),
    Row("_<_", "less_int64_double", "int double", "bool", less),
    Row("_<_", "less_int64_uint64", "int uint", "bool", less),
    Row("_<_", "less_uint64", "uint uint", "bool", less),
    Row("_<_", "less_uint64_double", "uint double", "bool", less),
    Row("_<_", "less_uint64_int64", "uint int", "bool", less),
    Row("_<_", "less_double", "double double", "bool", less),
    Row("_<_", "less_double_int64", "double int", "bool", less),
    Row("_<_", "less_double_uint64", "double uint", "bool", less),
    Row("_<_", "less_string", "string string", "bool", less),
    Row("_<_", "less_bytes", "bytes bytes", "bool", less),
    Row("_<_", "less_timestamp", "timestamp timestamp", "bool", less),
    Row("_<_", "less_duration", "duration duration", "bool", less),
    Row("_<=_", "less_equals_bool", "bool bool", "bool", less_equals),
    Row("_<=_", "less_equals_int64", "int int", "bool", less_equals),
    Row("_<=_", "less_equals_int64_double", "int double", "bool", less_equals),
    Row("_<=_", "less_equals_int64_uint64", "int uint", "bool", less_equals),
    Row("_<=_", "less_equals_uint64", "uint uint", "bool", less_equals),
    Row("_<=_", "less_equals_uint64_double", "uint double", "bool", less_equals),
    Row("_<=_", "less_equals_uint64_int64", "uint int", "bool", less_equals),
    Row("_<=_", "less_equals_double", "double double", "bool", less_equals),
    Row("_<=_", "less_equals_double_int64", "double int", "bool", less_equals),
    Row("_<=_", "less_equals_double_uint64", "double uint", "bool", less_equals),
    Row("_<=_", "less_equals_string", "string string", "bool", less_equals),
    Row("_<=_", "less_equals_bytes", "bytes bytes", "bool", less_equals),
    Row("_<=_", "less_equals_timestamp", "timestamp timestamp", "bool", less_equals),
    Row("_<=_", "less_equals_duration", "duration duration", "bool", less_equals),
    Row("_>_", "greater_bool", "bool bool", "bool", greater),
    Row("_>_", "greater_int64", "int int", "bool", greater),
    Row("_>_", "greater_int64_double", "int double", "bool", greater),
    Row("_>_", "greater_int64_uint64", "int uint", "bool", greater),
    Row("_>_", "greater_uint64", "uint uint", "bool", greater),
    Row("_>_", "greater_uint64_double", "uint double", "bool", greater),
    Row("_>_", "greater_uint64_int64", "uint int", "bool", greater),
    Row("_>_", "greater_double", "double double", "bool", greater),
    Row("_>_", "greater_double_int64", "double int", "bool", greater),
    Row("_>_", "greater_double_uint64", "double uint", "bool", greater),
    Row("_>_", "greater_string", "string string", "bool", greater),
    Row("_>_", "greater_bytes", "bytes bytes", "bool", greater),
    Row("_>_", "greater_timestamp", "timestamp timestamp", "bool", greater),
    Row("_>_", "greater_duration", "duration duration", "bool", greater),
    Row("_>=_", "greater_equals_bool", "bool bool", "bool", greater_equals),
    Row("_>=_", "greater_equals_int64", "int int", "bool", greater_equals),
    Row("_>=_", "greater_equals_int64_double", "int double", "bool", greater_equals),
    Row("_>=_", "greater_equals_int64_uint64", "int uint", "bool", greater_equals),
    Row("_>=_", "greater_equals_uint64", "uint uint", "bool", greater_equals),
    Row("_>=_", "greater_equals_uint64_double", "uint double", "bool", greater_equals),
    Row("_>=_", "greater_equals_uint64_int64", "uint int", "bool", greater_equals),
    Row("_>=_", "greater_equals_double", "double double", "bool", greater_equals),
    Row("_>=_", "greater_equals_double_int64", "double int", "bool", greater_equals),
    Row("_>=_", "greater_equals_double_uint64", "double uint", "bool", greater_equals),
    Row("_>=_", "greater_equals_string", "string string", "bool", greater_equals),
    Row("_>=_", "greater_equals_bytes", "bytes bytes", "bool", greater_equals),
    Row("_>=_", "greater_equals_timestamp", "timestamp timestamp", "bool", greater_equals),
    Row("_>=_", "greater_equals_duration", "duration duration", "bool", greater_equals),
    Row("_[_]", "index_list", "list(A) int", "A", unreachable),
    Row("_[_]", "index_map", "map(A, B) A", "B", unreachable),
    Row("@in", "in_list", "A list(A)", "bool", contains),
    Row("@in", "in_map", "A map(A, B)", "bool", contains),
    Row("size", "size_bytes", "bytes", "int", size),
    Row("size", "bytes_size", ".bytes", "int", size),
    Row("size", "size_list", "list(A)", "int", size),
    Row("size", "list_size", ".list(A)", "int", size),
    Row("size", "size_map", "map(A, B)", "int", size),
    Row("size", "map_size", ".map(A, B)", "int", size),
    Row("size", "size_string", "string", "int", size),
    Row("size", "string_size", ".string", "int", size),
    Row("type", "type", "A", "type(A)", |_, arguments| Ok(type_of(&arguments[0]))),
    Row("dyn", "to_dyn", "A", "dyn", |_, arguments| Ok(arguments[0].clone())),
];

/// The conversions, and the functions of texts.
#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("bool", "bool_to_bool", "bool", "bool", |_, v| convert(&v[0], Target::Bool)),
    Row("bool", "string_to_bool", "string", "bool", |_, v| convert(&v[0], Target::Bool)),
    Row("bytes", "bytes_to_bytes", "bytes", "bytes", |_, v| convert(&v[0], Target::Bytes)),
    Row("bytes", "string_to_bytes", "string", "bytes", |_, v| convert(&v[0], Target::Bytes)),
    Row("double", "double_to_double", "double", "double", |_, v| convert(&v[0], Target::Double)),
    Row("double", "int64_to_double", "int", "double", |_, v| convert(&v[0], Target::Double)),
    Row("double", "string_to_double", "string", "double", |_, v| convert(&v[0], Target::Double)),
    Row("double", "uint64_to_double", "uint", "double", |_, v| convert(&v[0], Target::Double)),
    Row("duration", "duration_to_duration", "duration", "duration", |_, v| convert(&v[0], Target::Duration)),
    Row("duration", "int64_to_duration", "int", "duration", |_, v| convert(&v[0], Target::Duration)),
    Row("duration", "string_to_duration", "string", "duration", |_, v| convert(&v[0], Target::Duration)),
    Row("int", "int64_to_int64", "int", "int", |_, v| convert(&v[0], Target::Int)),
    Row("int", "double_to_int64", "double", "int", |_, v| convert(&v[0], Target::Int)),
    Row("int", "duration_to_int64", "duration", "int", |_, v| convert(&v[0], Target::Int)),
    Row("int", "string_to_int64", "string", "int", |_, v| convert(&v[0], Target::Int)),
    Row("int", "timestamp_to_int64", "timestamp", "int", |_, v| convert(&v[0], Target::Int)),
    Row("int", "uint64_to_int64", "uint", "int", |_, v| convert(&v[0], Target::Int)),
    Row("string", "string_to_string", "string", "string", |_, v| convert(&v[0], Target::String)),
    Row("string", "bool_to_string", "bool", "string", |_, v| convert(&v[0], Target::String)),
    Row("string", "bytes_to_string", "bytes", "string", |_, v| convert(&v[0], Target::String)),
    Row("string", "double_to_string", "double", "string", |_, v| convert(&v[0], Target::String)),
    Row("string", "duration_to_string", "duration", "string", |_, v| convert(&v[0], Target::String)),
    Row("string", "int64_to_string", "int", "string", |_, v| convert(&v[0], Target::String)),
    Row("string", "timestamp_to_string", "timestamp", "string", |_, v| convert(&v[0], Target::String)),
    Row("string", "uint64_to_string", "uint", "string", |_, v| convert(&v[0], Target::String)),
    Row("timestamp", "timestamp_to_timestamp", "timestamp", "timestamp", |_, v| convert(&v[0], Target::Timestamp)),
    Row("timestamp", "int64_to_timestamp", "int", "timestamp", |_, v| convert(&v[0], Target::Timestamp)),
    Row("timestamp", "string_to_timestamp", "string", "timestamp", |_, v| convert(&v[0], Target::Timestamp)),
    Row("uint", "uint64_to_uint64", "uint", "uint", |_, v| convert(&v[0], Target::Uint)),
    Row("uint", "double_to_uint64", "double", "uint", |_, v| convert(&v[0], Target::Uint)),
    Row("uint", "int64_to_uint64", "int", "uint", |_, v| convert(&v[0], Target::Uint)),
    Row("uint", "string_to_uint64", "string", "uint", |_, v| convert(&v[0], Target::Uint)),
    Row("contains", "contains_string", ".string string", "bool", |meter, v| {
        search(meter, v, |text, part| text.contains(part))
    }),
    Row("endsWith", "ends_with_string", ".string string", "bool", |meter, v| {
        search(meter, v, |text, part| text.ends_with(part))
    }),
    Row("startsWith", "starts_with_string", ".string string", "bool", |meter, v| {
        search(meter, v, |text, part| text.starts_with(part))
    }),
];

/// Stands for operators that the evaluation itself knows.
fn unreachable<'a>(_: &mut Meter, _: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    Err(Error::no_overload())
}

fn search<'a>(
    meter: &mut Meter,
    arguments: Arguments<'_, 'a>,
    found: fn(&str, &str) -> bool,
) -> Result<Value<'a>, Error> {
    let (text, part) = (as_text(&arguments[0]), as_text(&arguments[1]));
    let (Ok(text), Ok(part)) = (text, part) else { return Err(Error::no_overload()) };
    meter.work(text.len() + part.len())?;
    Ok(Value::Bool(found(text, part)))
}

fn not<'a>(_: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    match &arguments[0] {
        Value::Bool(value) => Ok(Value::Bool(!value)),
        _ => Err(Error::no_overload()),
    }
}

fn add<'a>(meter: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(match (&arguments[0], &arguments[1]) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(*b).ok_or(INT_OVERFLOW)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_add(*b).ok_or(UINT_OVERFLOW)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
        (Value::String(a), Value::String(b)) => {
            meter.allocate(a.len() + b.len())?;
            Value::String(Text::Shared([&**a, &**b].concat().into()))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            meter.allocate(a.len() + b.len())?;
            Value::Bytes([&**a, &**b].concat().into())
        }
        (Value::List(a), Value::List(b)) => {
            meter.allocate(64)?;
            match merge(meter, a, b)? {
                Some(merged) => Value::List(merged),
                None => Value::List(a.clone().concat(b.clone())),
            }
        }
        (Value::Duration(a), Value::Duration(b)) => {
            Value::Duration(a.checked_add(*b).ok_or(DURATION_OVERFLOW)?)
        }
        (Value::Timestamp(at), Value::Duration(nanos)) | (Value::Duration(nanos), Value::Timestamp(at)) => {
            Value::Timestamp(at.plus(i128::from(*nanos))?)
        }
        (one, _) => return Err(no_operator(one)),
    })
}

/// Returns the error of an operator that has no overload: without a message if the first argument has no such
/// operator.
fn no_operator(first: &Value<'_>) -> Error {
    match first {
        Value::Null | Value::Bool(_) | Value::Map(_) | Value::Type(_) | Value::Library(_) => {
            Error::mismatch()
        }
        _ => Error::no_overload(),
    }
}

fn subtract<'a>(_: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(match (&arguments[0], &arguments[1]) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_sub(*b).ok_or(INT_OVERFLOW)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_sub(*b).ok_or(UINT_OVERFLOW)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a - b),
        (Value::Duration(a), Value::Duration(b)) => {
            Value::Duration(a.checked_sub(*b).ok_or(DURATION_OVERFLOW)?)
        }
        (Value::Timestamp(at), Value::Duration(nanos)) => Value::Timestamp(at.plus(-i128::from(*nanos))?),
        (Value::Timestamp(a), Value::Timestamp(b)) => Value::Duration(a.since(b)?),
        (one, _) => return Err(no_operator(one)),
    })
}

fn multiply<'a>(_: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(match (&arguments[0], &arguments[1]) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_mul(*b).ok_or(INT_OVERFLOW)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a.checked_mul(*b).ok_or(UINT_OVERFLOW)?),
        (Value::Double(a), Value::Double(b)) => Value::Double(a * b),
        (one, _) => return Err(no_operator(one)),
    })
}

fn divide<'a>(_: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(match (&arguments[0], &arguments[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => return Err(DIVISION_BY_ZERO),
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_div(*b).ok_or(INT_OVERFLOW)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a / b),
        (Value::Double(a), Value::Double(b)) => Value::Double(a / b),
        (one, _) => return Err(no_operator(one)),
    })
}

fn modulo<'a>(_: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    Ok(match (&arguments[0], &arguments[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => return Err(MODULUS_BY_ZERO),
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_rem(*b).ok_or(INT_OVERFLOW)?),
        (Value::Uint(a), Value::Uint(b)) => Value::Uint(a % b),
        (one, _) => return Err(no_operator(one)),
    })
}

fn negate<'a>(_: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    match &arguments[0] {
        Value::Int(value) => Ok(Value::Int(value.checked_neg().ok_or(INT_OVERFLOW)?)),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Duration(nanos) => Ok(Value::Duration(nanos.checked_neg().ok_or(DURATION_OVERFLOW)?)),
        other => Err(no_operator(other)),
    }
}

fn order<'a>(
    meter: &mut Meter,
    arguments: Arguments<'_, 'a>,
    accepts: fn(Ordering) -> bool,
) -> Result<Value<'a>, Error> {
    let ordering = compare(meter, &arguments[0], &arguments[1]);
    match (ordering, &arguments[0]) {
        (Ok(ordering), _) => Ok(Value::Bool(accepts(ordering))),
        // Only values with an order have the operators.
        (Err(_), Value::Null | Value::List(_) | Value::Map(_) | Value::Type(_) | Value::Library(_)) => {
            mismatch()
        }
        (Err(error), _) => Err(error),
    }
}

fn less<'a>(meter: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    order(meter, arguments, Ordering::is_lt)
}

fn less_equals<'a>(meter: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    order(meter, arguments, Ordering::is_le)
}

fn greater<'a>(meter: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    order(meter, arguments, Ordering::is_gt)
}

fn greater_equals<'a>(meter: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    order(meter, arguments, Ordering::is_ge)
}

fn contains<'a>(meter: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    match &arguments[1] {
        Value::Map(map) => Ok(Value::Bool(map.get(&arguments[0])?.is_some())),
        Value::List(list) => {
            let mut failure = None;
            for element in list.iter() {
                let found = element.and_then(|element| equal(meter, &arguments[0], &element));
                match found {
                    Ok(true) => return Ok(Value::Bool(true)),
                    Ok(false) => {}
                    Err(error) if error.is_fatal() => return Err(error),
                    Err(error) => failure = Some(error),
                }
            }
            match failure {
                // A list of JSON with a schema reports elements that cannot be compared.
                Some(error) if matches!(list, crate::value::List::Json(..)) => Err(error),
                _ => Ok(Value::Bool(false)),
            }
        }
        _ => Err(Error::no_overload()),
    }
}

fn size<'a>(meter: &mut Meter, arguments: Arguments<'_, 'a>) -> Result<Value<'a>, Error> {
    if let Value::String(text) = &arguments[0] {
        meter.work(text.len() / 16)?;
    }
    match &arguments[0] {
        Value::Library(_) => mismatch(),
        value => value.counted_size().map(|size| Value::Int(size as i64)).ok_or(Error::mismatch()),
    }
}
