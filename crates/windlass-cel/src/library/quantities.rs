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
        let parsed = as_text(&v[0])?.parse::<Quantity>().map_err(|error| Error::new(error.to_string()))?;
        Ok(quantity(parsed))
    }),
    Row("isQuantity", "is_quantity_string", "string", "bool", |_, v| {
        Ok(Value::Bool(as_text(&v[0])?.parse::<Quantity>().is_ok()))
    }),
    Row("sign", "quantity_sign", ".kubernetes.Quantity", "int", |_, v| {
        Ok(Value::Int(as_quantity(&v[0])?.signum() as i64))
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
        Ok(Value::Double(as_quantity(&v[0])?.to_f64()))
    }),
    Row("asInteger", "quantity_get_int", ".kubernetes.Quantity", "int", |_, v| {
        let whole = as_quantity(&v[0])?.to_i64();
        whole.map(Value::Int).ok_or(Error::fixed("cannot convert value to integer"))
    }),
    Row("isInteger", "quantity_is_integer", ".kubernetes.Quantity", "bool", |_, v| {
        Ok(Value::Bool(as_quantity(&v[0])?.to_i64().is_some()))
    }),
    Row("add", "quantity_add", ".kubernetes.Quantity kubernetes.Quantity", "kubernetes.Quantity", |_, v| {
        Ok(quantity(*as_quantity(&v[0])? + *as_quantity(&v[1])?))
    }),
    Row("add", "quantity_add_int", ".kubernetes.Quantity int", "kubernetes.Quantity", |_, v| {
        Ok(quantity(*as_quantity(&v[0])? + Quantity::whole(as_int(&v[1])?)))
    }),
    Row("sub", "quantity_sub", ".kubernetes.Quantity kubernetes.Quantity", "kubernetes.Quantity", |_, v| {
        Ok(quantity(*as_quantity(&v[0])? - *as_quantity(&v[1])?))
    }),
    Row("sub", "quantity_sub_int", ".kubernetes.Quantity int", "kubernetes.Quantity", |_, v| {
        Ok(quantity(*as_quantity(&v[0])? - Quantity::whole(as_int(&v[1])?)))
    }),
];

fn quantity<'a>(amount: Quantity) -> Value<'a> {
    Value::Library(Library::Quantity(Arc::new(amount)))
}

fn as_quantity<'v>(value: &'v Value<'_>) -> Result<&'v Quantity, Error> {
    if let Value::Library(Library::Quantity(amount)) = value { Ok(amount) } else { mismatch() }
}

fn order(arguments: &[Value<'_>]) -> Result<Ordering, Error> {
    Ok(as_quantity(&arguments[0])?.cmp(as_quantity(&arguments[1])?))
}
