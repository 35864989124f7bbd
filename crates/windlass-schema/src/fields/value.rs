//! Order, equality and text of values in field paths.

use std::cmp::Ordering;
use std::fmt::{self, Write};

use serde_json::{Map, Number, Value};

use crate::go::{go_number, go_quote};

/// A number in Go's decoded form.
#[derive(Clone, Copy)]
enum Decoded {
    Int(i64),
    Float(f64),
}

impl Decoded {
    fn of(number: &Number) -> Self {
        match number.as_i64() {
            Some(int) => Self::Int(int),
            None => Self::Float(number.as_f64().unwrap_or_default()),
        }
    }

    fn float(self) -> f64 {
        match self {
            Self::Int(int) => int as f64,
            Self::Float(float) => float,
        }
    }
}

fn compare_numbers(left: &Number, right: &Number) -> Ordering {
    match (Decoded::of(left), Decoded::of(right)) {
        (Decoded::Int(left), Decoded::Int(right)) => left.cmp(&right),
        (left, right) => left.float().partial_cmp(&right.float()).unwrap_or(Ordering::Equal),
    }
}

/// Returns the position of a JSON type in the order of values.
fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

/// Compares two values: numbers are before strings, booleans, arrays, objects and null.
pub(super) fn compare(left: &Value, right: &Value) -> Ordering {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right),
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Bool(left), Value::Bool(right)) => left.cmp(right),
        (Value::Array(left), Value::Array(right)) => {
            let items = left.iter().zip(right).map(|(left, right)| compare(left, right));
            first_difference(items).then(left.len().cmp(&right.len()))
        }
        (Value::Object(left), Value::Object(right)) => compare_objects(left, right),
        _ => rank(left).cmp(&rank(right)),
    }
}

/// Compares the members of two objects, sorted by name.
fn compare_objects(left: &Map<String, Value>, right: &Map<String, Value>) -> Ordering {
    let members = left.iter().zip(right);
    let order = members
        .map(|((name, value), (other_name, other))| name.cmp(other_name).then_with(|| compare(value, other)));
    first_difference(order).then(left.len().cmp(&right.len()))
}

fn first_difference(mut order: impl Iterator<Item = Ordering>) -> Ordering {
    order.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Returns whether two values are equal. Numbers with the same value are equal.
pub(super) fn equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => compare_numbers(left, right).is_eq(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| equal(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|((name, value), (other_name, other))| name == other_name && equal(value, other))
        }
        _ => left == right,
    }
}

/// Returns whether two values are scalars and look the same; a quick check before the types are known.
pub(super) fn is_same_scalar(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Number(left), Value::Number(right)) => left == right,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        _ => false,
    }
}

/// Writes a value in the form of a printed path.
pub(super) fn write(value: &Value, out: &mut impl Write) -> fmt::Result {
    match value {
        Value::Null => out.write_str("null"),
        Value::Bool(value) => write!(out, "{value}"),
        Value::Number(number) => out.write_str(&go_number(number)),
        Value::String(text) => out.write_str(&go_quote(text)),
        Value::Array(items) => {
            out.write_char('[')?;
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.write_char(',')?;
                }
                write(item, out)?;
            }
            out.write_char(']')
        }
        Value::Object(members) => members.iter().try_for_each(|(name, value)| {
            write!(out, "{name}=")?;
            write(value, out)
        }),
    }
}
