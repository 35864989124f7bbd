//! Functions of numbers.

use std::cmp::Ordering;

use super::mismatch;
use crate::declare::Row;
use crate::error::Error;
use crate::meter::Meter;
use crate::value::{Value, compare};

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("math.@min", "math_@min_double", "double", "double", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_int", "int", "int", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_uint", "uint", "uint", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_double_double", "double double", "double", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_double_int", "double int", "dyn", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_double_uint", "double uint", "dyn", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_int_double", "int double", "dyn", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_int_int", "int int", "int", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_int_uint", "int uint", "dyn", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_uint_double", "uint double", "dyn", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_uint_int", "uint int", "dyn", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_uint_uint", "uint uint", "uint", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_list_double", "list(double)", "double", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_list_int", "list(int)", "int", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_list_uint", "list(uint)", "uint", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@min", "math_@min_list_dyn", "list(dyn)", "dyn", |meter, v| extreme(meter, v, Ordering::Less)),
    Row("math.@max", "math_@max_double", "double", "double", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_int", "int", "int", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_uint", "uint", "uint", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_double_double", "double double", "double", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_double_int", "double int", "dyn", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_double_uint", "double uint", "dyn", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_int_double", "int double", "dyn", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_int_int", "int int", "int", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_int_uint", "int uint", "dyn", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_uint_double", "uint double", "dyn", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_uint_int", "uint int", "dyn", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_uint_uint", "uint uint", "uint", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_list_double", "list(double)", "double", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_list_int", "list(int)", "int", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_list_uint", "list(uint)", "uint", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.@max", "math_@max_list_dyn", "list(dyn)", "dyn", |meter, v| extreme(meter, v, Ordering::Greater)),
    Row("math.ceil", "math_ceil_double", "double", "double", |_, v| double(v, f64::ceil)),
    Row("math.floor", "math_floor_double", "double", "double", |_, v| double(v, f64::floor)),
    Row("math.round", "math_round_double", "double", "double", |_, v| double(v, f64::round)),
    Row("math.trunc", "math_trunc_double", "double", "double", |_, v| double(v, f64::trunc)),
    Row("math.isInf", "math_isInf_double", "double", "bool", |_, v| test(v, f64::is_infinite)),
    Row("math.isNaN", "math_isNaN_double", "double", "bool", |_, v| test(v, f64::is_nan)),
    Row("math.isFinite", "math_isFinite_double", "double", "bool", |_, v| test(v, f64::is_finite)),
    Row("math.abs", "math_abs_double", "double", "double", |_, v| abs(&v[0])),
    Row("math.abs", "math_abs_int", "int", "int", |_, v| abs(&v[0])),
    Row("math.abs", "math_abs_uint", "uint", "uint", |_, v| abs(&v[0])),
    Row("math.sign", "math_sign_double", "double", "double", |_, v| sign(&v[0])),
    Row("math.sign", "math_sign_int", "int", "int", |_, v| sign(&v[0])),
    Row("math.sign", "math_sign_uint", "uint", "uint", |_, v| sign(&v[0])),
    Row("math.bitAnd", "math_bitAnd_int_int", "int int", "int", |_, v| bits(v, |a, b| a & b, |a, b| a & b)),
    Row("math.bitAnd", "math_bitAnd_uint_uint", "uint uint", "uint", |_, v| bits(v, |a, b| a & b, |a, b| a & b)),
    Row("math.bitOr", "math_bitOr_int_int", "int int", "int", |_, v| bits(v, |a, b| a | b, |a, b| a | b)),
    Row("math.bitOr", "math_bitOr_uint_uint", "uint uint", "uint", |_, v| bits(v, |a, b| a | b, |a, b| a | b)),
    Row("math.bitXor", "math_bitXor_int_int", "int int", "int", |_, v| bits(v, |a, b| a ^ b, |a, b| a ^ b)),
    Row("math.bitXor", "math_bitXor_uint_uint", "uint uint", "uint", |_, v| bits(v, |a, b| a ^ b, |a, b| a ^ b)),
    Row("math.bitNot", "math_bitNot_int_int", "int", "int", |_, v| bits_of(&v[0])),
    Row("math.bitShiftLeft", "math_bitShiftLeft_int_int", "int int", "int", |_, v| shift(v, true)),
    Row("math.bitShiftRight", "math_bitShiftRight_int_int", "int int", "int", |_, v| shift(v, false)),
    Row("math.bitNot", "math_bitNot_uint_uint", "uint", "uint", |_, v| bits_of(&v[0])),
    Row("math.bitShiftLeft", "math_bitShiftLeft_uint_int", "uint int", "uint", |_, v| shift(v, true)),
    Row("math.bitShiftRight", "math_bitShiftRight_uint_int", "uint int", "uint", |_, v| shift(v, false)),
    Row("math.sqrt", "math_sqrt_double", "double", "double", |_, v| sqrt(&v[0])),
    Row("math.sqrt", "math_sqrt_int", "int", "double", |_, v| sqrt(&v[0])),
    Row("math.sqrt", "math_sqrt_uint", "uint", "double", |_, v| sqrt(&v[0])),
];

/// Returns the first argument, or element of a list, that is smallest or largest.
fn extreme<'a>(meter: &mut Meter, arguments: &[Value<'a>], better: Ordering) -> Result<Value<'a>, Error> {
    let elements: Vec<Value<'a>> = match arguments {
        [Value::List(list)] => list.iter().collect::<Result<_, Error>>()?,
        arguments => arguments.to_vec(),
    };
    let mut best: Option<Value<'a>> = None;
    for element in elements {
        if !matches!(element, Value::Int(_) | Value::Uint(_) | Value::Double(_)) {
            return mismatch();
        }
        let replaces = match &best {
            None => true,
            Some(best) => compare(meter, &element, best)? == better,
        };
        if replaces {
            best = Some(element);
        }
    }
    best.ok_or(Error::fixed("math.@min(list) argument must not be empty"))
}

fn double<'a>(arguments: &[Value<'a>], map: fn(f64) -> f64) -> Result<Value<'a>, Error> {
    match &arguments[0] {
        Value::Double(value) => Ok(Value::Double(map(*value))),
        _ => mismatch(),
    }
}

fn test<'a>(arguments: &[Value<'a>], test: fn(f64) -> bool) -> Result<Value<'a>, Error> {
    match &arguments[0] {
        Value::Double(value) => Ok(Value::Bool(test(*value))),
        _ => mismatch(),
    }
}

fn abs<'a>(value: &Value<'_>) -> Result<Value<'a>, Error> {
    Ok(match value {
        Value::Int(value) => Value::Int(value.checked_abs().ok_or(Error::fixed("integer overflow"))?),
        Value::Uint(value) => Value::Uint(*value),
        Value::Double(value) => Value::Double(value.abs()),
        _ => return mismatch(),
    })
}

fn sign<'a>(value: &Value<'_>) -> Result<Value<'a>, Error> {
    Ok(match value {
        Value::Int(value) => Value::Int(value.signum()),
        Value::Uint(value) => Value::Uint((*value).min(1)),
        Value::Double(value) if *value == 0.0 || value.is_nan() => Value::Double(*value),
        Value::Double(value) => Value::Double(value.signum()),
        _ => return mismatch(),
    })
}

fn bits<'a>(
    arguments: &[Value<'a>],
    of_ints: fn(i64, i64) -> i64,
    of_uints: fn(u64, u64) -> u64,
) -> Result<Value<'a>, Error> {
    match arguments {
        [Value::Int(a), Value::Int(b)] => Ok(Value::Int(of_ints(*a, *b))),
        [Value::Uint(a), Value::Uint(b)] => Ok(Value::Uint(of_uints(*a, *b))),
        _ => mismatch(),
    }
}

fn bits_of<'a>(value: &Value<'_>) -> Result<Value<'a>, Error> {
    match value {
        Value::Int(value) => Ok(Value::Int(!value)),
        Value::Uint(value) => Ok(Value::Uint(!value)),
        _ => mismatch(),
    }
}

fn shift<'a>(arguments: &[Value<'a>], left: bool) -> Result<Value<'a>, Error> {
    let [value, Value::Int(count)] = arguments else { return mismatch() };
    let Ok(count) = u32::try_from(*count) else {
        let direction = if left { "Left" } else { "Right" };
        return Err(Error::new(format!("math.bitShift{direction}() negative offset: {count}")));
    };
    let shifted = |bits: u64| {
        let shifted = if left { bits.checked_shl(count) } else { bits.checked_shr(count) };
        shifted.unwrap_or_default()
    };
    match value {
        Value::Int(value) => Ok(Value::Int(shifted(*value as u64) as i64)),
        Value::Uint(value) => Ok(Value::Uint(shifted(*value))),
        _ => mismatch(),
    }
}

fn sqrt<'a>(value: &Value<'_>) -> Result<Value<'a>, Error> {
    Ok(Value::Double(match value {
        Value::Int(value) => (*value as f64).sqrt(),
        Value::Uint(value) => (*value as f64).sqrt(),
        Value::Double(value) => value.sqrt(),
        _ => return mismatch(),
    }))
}
