//! The validations of numbers.

use serde_json::{Number, Value};

use super::result::ValidationResult;
use super::{NO_FIELD, Validator};
use crate::FieldError;
use crate::go::go_float;
use crate::graph::{NodeRef, Type};

/// Returns whether a number is an integer, within the precision of a float.
pub(super) fn is_integral(value: &Value) -> bool {
    value.as_f64().is_some_and(is_json_integer)
}

fn is_json_integer(value: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    if !value.is_finite() || value.abs() > LARGEST {
        return false;
    }
    let (whole, fraction) = (value.trunc(), value.fract());
    fraction == 0.0 || whole != 0.0 && fraction.abs() / (value.abs() + whole.abs()) < 1e-9
}

pub(super) fn check(at: &Validator<'_>, schema: NodeRef<'_>, value: &Number) -> ValidationResult {
    let mut result = ValidationResult::matched();
    let (kind, format) = if schema.is_int_or_string() {
        (Type::Any, None)
    } else {
        (schema.kind(), schema.format().filter(|_| matches!(schema.kind(), Type::Integer | Type::Number)))
    };
    range(&mut result, "Checked", at, kind, format, value);
    let Some(rules) = schema.node.rules.more.as_deref() else { return result };
    let path = at.path.as_str();
    if let Some(factor) = &rules.multiple_of
        && !is_multiple(value, factor)
    {
        let positive = if value.is_i64() { whole(factor) > 0 } else { float(factor) > 0.0 };
        result.add(at.error(|| {
            let text = bound(value, factor);
            if positive {
                let detail = format!("{path} in body should be a multiple of {text}");
                return FieldError::invalid(at.field(), value.clone(), detail);
            }
            let factor = if value.is_i64() { whole(factor).into() } else { factor.clone() };
            let detail = format!("factor MultipleOf declared for {path} must be positive: {text}");
            FieldError::invalid(at.field(), factor, detail)
        }));
    }
    let mut fail = |relation: &str, limit: &Number| {
        result.add(at.error(|| {
            let detail = format!("{path} in body should be {relation} {}", bound(value, limit));
            FieldError::invalid(at.field(), value.clone(), detail)
        }));
    };
    if let Some(max) = &rules.maximum {
        let exclusive = rules.exclusive_maximum;
        if exceeds(value, max, exclusive) {
            fail(if exclusive { "less than" } else { "less than or equal to" }, max);
        }
    }
    if let Some(min) = &rules.minimum {
        let exclusive = rules.exclusive_minimum;
        if undercuts(value, min, exclusive) {
            fail(if exclusive { "greater than" } else { "greater than or equal to" }, min);
        }
    }
    result
}

/// Formats a bound for a comparison: as an integer if the value is an integer.
fn bound(value: &Number, bound: &Number) -> String {
    if value.is_i64() { whole(bound).to_string() } else { go_float(float(bound), 1e-4, 1e6) }
}

fn whole(number: &Number) -> i64 {
    number.as_i64().unwrap_or_else(|| float(number) as i64)
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

fn exceeds(value: &Number, max: &Number, exclusive: bool) -> bool {
    match value.as_i64() {
        Some(value) => value > whole(max) || exclusive && value == whole(max),
        None => float(value) > float(max) || exclusive && float(value) >= float(max),
    }
}

fn undercuts(value: &Number, min: &Number, exclusive: bool) -> bool {
    match value.as_i64() {
        Some(value) => value < whole(min) || exclusive && value == whole(min),
        None => float(value) < float(min) || exclusive && float(value) <= float(min),
    }
}

fn is_multiple(value: &Number, factor: &Number) -> bool {
    if let Some(value) = value.as_i64() {
        let factor = whole(factor);
        return factor > 0 && value % factor == 0;
    }
    let (value, factor) = (float(value), float(factor));
    let times = if factor < 1.0 { 1.0 / factor * value } else { value / factor };
    factor > 0.0 && is_json_integer(times)
}

/// Checks that a number is in the range of the type and format.
fn range(
    result: &mut ValidationResult,
    what: &str,
    at: &Validator<'_>,
    kind: Type,
    format: Option<&str>,
    value: &Number,
) {
    let fits = match (kind, format) {
        (Type::Integer, Some("int32")) => value.as_i64().is_some_and(|value| i32::try_from(value).is_ok()),
        (Type::Integer, _) => {
            value.is_i64() || float(value).fract() == 0.0 && float(value).abs() < i64::MAX as f64
        }
        (_, Some("float")) => float(value).abs() <= f64::from(f32::MAX),
        _ => true,
    };
    if fits {
        return;
    }
    let name = if kind == Type::Integer { "integer" } else { "number" };
    result.add(at.error(|| {
        let path = &at.path;
        let detail = match format {
            Some(format) => format!("{what} value must be of type {name} with format {format} in {path}"),
            None => format!("{what} value must be of type {name} (default format) in {path}"),
        };
        FieldError::invalid(NO_FIELD, "", detail)
    }));
}
