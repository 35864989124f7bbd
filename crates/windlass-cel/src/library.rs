//! The libraries of functions.

pub(crate) mod authorizer;
mod encoders;
pub(crate) mod format;
mod json_patch;
mod lists;
mod math;
pub(crate) mod named_format;
pub(crate) mod network;
mod optionals;
pub(crate) mod quantities;
pub(crate) mod regex;
pub(crate) mod semver;
mod sets;
mod standard;
mod strings;
mod times;
pub(crate) mod url;

pub(crate) use json_patch::ESCAPE_KEY;

use crate::declare::Functions;
use crate::error::Error;
use crate::value::{List, Value};

/// Returns the functions of Kubernetes.
pub(crate) fn kubernetes() -> Functions {
    let mut functions = Functions::default();
    functions.add(standard::OPERATORS, true);
    functions.add(standard::FUNCTIONS, false);
    functions.add(times::FUNCTIONS, false);
    functions.add(optionals::FUNCTIONS, false);
    functions.add(strings::FUNCTIONS, false);
    functions.add(lists::FUNCTIONS, false);
    functions.add(lists::SORTING, true);
    functions.add(sets::FUNCTIONS, false);
    functions.add(regex::FUNCTIONS, false);
    functions.add(url::FUNCTIONS, false);
    functions.add(network::FUNCTIONS, false);
    functions.add(quantities::FUNCTIONS, false);
    functions.add(semver::FUNCTIONS, false);
    functions.add(named_format::FUNCTIONS, false);
    functions.add(authorizer::FUNCTIONS, false);
    functions.add(json_patch::FUNCTIONS, false);
    functions
}

/// Returns the functions of Kubernetes, and those of cel-go's other extensions.
pub(crate) fn extended() -> Functions {
    let mut functions = kubernetes();
    functions.add(math::FUNCTIONS, false);
    functions.add(encoders::FUNCTIONS, false);
    functions.add(strings::EXTENDED, false);
    functions
}

/// Returns the error of arguments that the function does not take.
fn mismatch<T>() -> Result<T, Error> {
    Err(Error::mismatch())
}

/// Returns the argument if it is a list.
fn as_list<'v, 'a>(value: &'v Value<'a>) -> Result<&'v List<'a>, Error> {
    if let Value::List(list) = value { Ok(list) } else { mismatch() }
}

/// Returns the argument if it is a text.
fn as_text<'v>(value: &'v Value<'_>) -> Result<&'v str, Error> {
    value.as_str().ok_or(Error::mismatch())
}

/// Returns the argument if it is an integer.
fn as_int(value: &Value<'_>) -> Result<i64, Error> {
    if let Value::Int(int) = value { Ok(*int) } else { mismatch() }
}
