//! Quantities: amounts of resources, such as `500Mi`.

use std::cmp::Ordering;
use std::sync::Arc;

use windlass_text::Quantity;

use super::{as_int, as_text, mismatch};
use crate::declare::Row;
use crate::error::Error;
use crate::value::{Library, Value};

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("quantity", "string_to_quantity", "string", "kubernetes.Quantity", |_, v| {
        let text = as_text(&v[0])?;
        let parsed = text.parse::<Quantity>().map_err(|error| Error::new(error.to_string()))?;
        Ok(value(Amount { quantity: parsed, scale: scale_of(text) }))
    }),
    Row("isQuantity", "is_quantity_string", "string", "bool", |_, v| {
        Ok(Value::Bool(as_text(&v[0])?.parse::<Quantity>().is_ok()))
    }),
    Row("sign", "quantity_sign", ".kubernetes.Quantity", "int", |_, v| {
        Ok(Value::Int(as_amount(&v[0])?.quantity.signum() as i64))
    }),
    Row("isGreaterThan", "quantity_is_greater_than", ".kubernetes.Quantity kubernetes.Quantity", "bool", |_, v| {
        Ok(Value::Bool(order(v)?.is_gt()))
    }),
    Row("isLessThan", "quantity_is_less_than", ".kubernetes.Quantity kubernetes.Quantity", "bool", |_, v| {
        Ok(Value::Bool(order(v)?.is_lt()))
    }),
    Row("compareTo", "quantity_compare_to", ".kubernetes.Quantity kubernetes.Quantity", "int", |_, v| {
        Ok(Value::Int(order(v)? as i64))
    }),
    Row("asApproximateFloat", "quantity_get_float", ".kubernetes.Quantity", "double", |_, v| {
        Ok(Value::Double(as_amount(&v[0])?.quantity.to_f64()))
    }),
    Row("asInteger", "quantity_get_int", ".kubernetes.Quantity", "int", |_, v| {
        let whole = as_amount(&v[0])?.to_i64();
        whole.map(Value::Int).ok_or(Error::fixed("cannot convert value to integer"))
    }),
    Row("isInteger", "quantity_is_integer", ".kubernetes.Quantity", "bool", |_, v| {
        Ok(Value::Bool(as_amount(&v[0])?.to_i64().is_some()))
    }),
    Row("add", "quantity_add", ".kubernetes.Quantity kubernetes.Quantity", "kubernetes.Quantity", |_, v| {
        Ok(combine(as_amount(&v[0])?, as_amount(&v[1])?, |one, other| one + other))
    }),
    Row("add", "quantity_add_int", ".kubernetes.Quantity int", "kubernetes.Quantity", |_, v| {
        Ok(combine(as_amount(&v[0])?, &Amount::whole(as_int(&v[1])?), |one, other| one + other))
    }),
    Row("sub", "quantity_sub", ".kubernetes.Quantity kubernetes.Quantity", "kubernetes.Quantity", |_, v| {
        Ok(combine(as_amount(&v[0])?, as_amount(&v[1])?, |one, other| one - other))
    }),
    Row("sub", "quantity_sub_int", ".kubernetes.Quantity int", "kubernetes.Quantity", |_, v| {
        Ok(combine(as_amount(&v[0])?, &Amount::whole(as_int(&v[1])?), |one, other| one - other))
    }),
];

/// A quantity.
#[derive(Clone, Debug)]
pub struct Amount {
    /// The quantity.
    pub quantity: Quantity,
    /// The power of ten of the last digit. `None` if Go does not count the amount in 64 bits.
    scale: Option<i32>,
}

impl Amount {
    fn whole(amount: i64) -> Self {
        Self { quantity: Quantity::whole(amount), scale: Some(0) }
    }

    /// Returns the amount as Go does: only if the amount was written without a fraction.
    fn to_i64(&self) -> Option<i64> {
        self.scale.filter(|scale| *scale >= 0).and_then(|_| self.quantity.to_i64())
    }
}

fn value<'a>(amount: Amount) -> Value<'a> {
    Value::Library(Library::Quantity(Arc::new(amount)))
}

fn combine<'a>(one: &Amount, other: &Amount, combine: fn(Quantity, Quantity) -> Quantity) -> Value<'a> {
    let scale = one.scale.zip(other.scale).map(|(one, other)| one.min(other));
    value(Amount { quantity: combine(one.quantity, other.quantity), scale })
}

fn as_amount<'v>(value: &'v Value<'_>) -> Result<&'v Amount, Error> {
    if let Value::Library(Library::Quantity(amount)) = value { Ok(amount) } else { mismatch() }
}

fn order(arguments: &[Value<'_>]) -> Result<Ordering, Error> {
    Ok(as_amount(&arguments[0])?.quantity.cmp(&as_amount(&arguments[1])?.quantity))
}

/// The most digits that Go counts in 64 bits.
const DIGITS: i32 = 18;

/// Returns the power of ten of the last digit of a quantity, if Go counts the amount in 64 bits.
fn scale_of(text: &str) -> Option<i32> {
    let number = text.trim_start_matches(['+', '-']);
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    let (number, suffix) = number.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let (whole, fraction) = (whole.trim_start_matches('0').len() as i32, fraction.len() as i32);
    let binary = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|known| *known == suffix);
    if let Some(power) = binary {
        let precision = 15 - whole - (power as i32 + 1) * 3 - 1;
        return (fraction == 0 && precision >= 0).then_some(0);
    }
    let decimal = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].iter().position(|known| *known == suffix);
    let exponent = match decimal {
        Some(power) => power as i32 * 3 - 9,
        None => suffix.strip_prefix(['e', 'E'])?.parse().ok()?,
    };
    (whole + fraction <= DIGITS && exponent - fraction >= -9).then_some(exponent - fraction)
}
