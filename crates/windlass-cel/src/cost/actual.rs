//! Costs of calls that were evaluated.

use crate::error::Error;
use crate::evaluate::costs::{CALL, CHARACTER, LIST, PATTERN};
use crate::meter::Meter;
use crate::value::{Library, Value};

/// Returns the cost of a call from its arguments and its result.
pub(crate) type CallCost = for<'a> fn(&mut Meter, &[Value<'a>], Option<&Value<'a>>) -> u64;

/// Returns the cost of looking at a number of characters.
fn traversal(size: u64, factor: f64) -> u64 {
    (size as f64 * factor).ceil() as u64
}

fn first(arguments: &[Value<'_>]) -> u64 {
    traversal(arguments[0].size(), CHARACTER)
}

/// Returns the cost of matching an expression.
fn regex(text: &Value<'_>, pattern: u64) -> u64 {
    let text = ((1.0 + text.size() as f64) * CHARACTER).ceil() as u64;
    text.saturating_mul(traversal(pattern, PATTERN))
}

/// Returns the cost of `==` or `!=`.
pub(crate) fn equality(
    left: &Result<Value<'_>, Error>,
    right: &Result<Value<'_>, Error>,
    negated: bool,
) -> u64 {
    if !negated && matches!(left, Ok(Value::Library(library)) if !matches!(library, Library::Preserved(_))) {
        return 1;
    }
    let size = |value: &Result<Value<'_>, Error>| value.as_ref().map_or(1, sized);
    traversal(size(left).min(size(right)), CHARACTER)
}

/// Returns the size of a value; of an optional, that of its value.
fn sized(value: &Value<'_>) -> u64 {
    match value {
        Value::Optional(Some(value)) => sized(value),
        value => value.size(),
    }
}

/// Returns the cost of looking at all parts of a value. A value that is too large has the largest cost.
fn deep(meter: &mut Meter, value: &Value<'_>) -> u64 {
    if meter.elements(1).is_err() {
        return u64::MAX;
    }
    match value {
        Value::String(text) => (text.len() as f64 * CHARACTER) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * CHARACTER) as u64,
        Value::List(list) => {
            let mut sum: u64 = 0;
            for element in list.iter() {
                sum = sum.saturating_add(element.as_ref().map_or(1, |element| deep(meter, element)));
                if sum == u64::MAX {
                    break;
                }
            }
            sum
        }
        Value::Map(map) => map.entries().iter().fold(0, |sum: u64, (key, value)| {
            let value = value.as_ref().map_or(1, |value| deep(meter, value));
            sum.saturating_add(deep(meter, key)).saturating_add(value)
        }),
        _ => 1,
    }
}

fn allocating(factor: f64, size: u64) -> u64 {
    ((size as f64 * factor) as u64).saturating_add(CALL + LIST)
}

/// Returns the cost of comparing all elements of a list with each other.
fn self_compare(list: &Value<'_>) -> u64 {
    let Value::List(elements) = list else { return allocating(2.0, 1) };
    let textual = matches!(elements.get(0), Some(Ok(Value::String(_) | Value::Bytes(_))));
    let factor = if textual { 2.0 + CHARACTER } else { 2.0 };
    let size = elements.len() as u64;
    allocating(factor, size.saturating_mul(size))
}

fn sets(arguments: &[Value<'_>], factor: u64) -> u64 {
    let product = arguments[0].size().saturating_mul(arguments[1].size());
    CALL.saturating_add(product.saturating_mul(factor))
}

fn selector(length: u64) -> u64 {
    let requirements = traversal(length, 0.5);
    LIST + traversal(length, CHARACTER) + traversal(requirements, 50.0)
}

/// Returns the cost of `containsIP` or `containsCIDR`.
fn contains_address(arguments: &[Value<'_>], of_range: bool) -> u64 {
    let size = arguments[0].size();
    let range = if of_range { traversal(size, CHARACTER) + 1 } else { 0 };
    let parse = if arguments[1].as_str().is_some() { traversal(arguments[1].size(), CHARACTER) } else { 0 };
    traversal(size + size, CHARACTER) + range + parse
}

/// Returns how the cost of a call is counted; `None` for 1. The id of the overload is empty if several may apply.
pub(crate) fn call_cost(name: &str, overload: &str) -> Option<CallCost> {
    by_overload(overload).or_else(|| by_name(name, overload)).or_else(|| standard(overload))
}

/// Costs of cel-go's extensions.
fn by_overload(overload: &str) -> Option<CallCost> {
    Some(match overload {
        "list_sets_contains_list" | "list_sets_intersects_list" => |_, arguments, _| sets(arguments, 1),
        "list_sets_equivalent_list" => |_, arguments, _| sets(arguments, 2),
        "list_slice" | "lists_range" | "list_reverse" => {
            |_, _, result| allocating(1.0, result.map_or(1, Value::size))
        }
        "list_flatten" | "list_flatten_int" => |_, arguments, _| {
            let depth = if let Some(Value::Int(depth)) = arguments.get(1) { *depth as f64 } else { 1.0 };
            allocating(depth, arguments[0].size())
        },
        "list_distinct" => |_, arguments, _| self_compare(&arguments[0]),
        _ if overload.ends_with("_sort") => |_, arguments, _| self_compare(&arguments[0]),
        _ if overload.ends_with("_sortByAssociatedKeys") => |_, arguments, _| self_compare(&arguments[1]),
        _ => return None,
    })
}

/// Costs of the functions of Kubernetes.
fn by_name(name: &str, overload: &str) -> Option<CallCost> {
    Some(match name {
        "check" => |_, _, _| 350_000,
        "fieldSelector" | "labelSelector" => |_, arguments, _| selector(arguments[1].size()),
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => {
            |meter, arguments, _| deep(meter, &arguments[0])
        }
        "url"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "jsonpatch.escapeKey"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => |_, arguments, _| first(arguments),
        "replace" | "split" | "ip.isCanonical" => {
            |_, arguments, _| traversal(arguments[0].size(), 2.0 * CHARACTER)
        }
        "join" => |_, _, result| traversal(result.map_or(1, Value::size), 2.0 * CHARACTER),
        "find" | "findAll" => |_, arguments, _| regex(&arguments[0], arguments[1].size()),
        "ip" if overload == "cidr_ip" => return None,
        "ip" => |_, arguments, _| first(arguments),
        "containsIP" => |_, arguments, _| contains_address(arguments, false),
        "containsCIDR" => |_, arguments, _| contains_address(arguments, true),
        "validate" => |_, arguments, _| match &arguments[0] {
            Value::Library(Library::Format(format)) => regex(&arguments[1], format.pattern_size),
            _ => CALL,
        },
        _ => return None,
    })
}

/// Costs of the functions of the language.
fn standard(overload: &str) -> Option<CallCost> {
    Some(match overload {
        // The prefix or the suffix is compared, since cel-go 0.29.
        "starts_with_string" | "ends_with_string" => {
            |_, arguments, _| traversal(arguments[1].size(), CHARACTER)
        }
        "string_to_bytes" | "bytes_to_string" | "strings_quote" | "string_format" => {
            |_, arguments, _| first(arguments)
        }
        "in_list" => |_, arguments, _| arguments[1].size(),
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes" => {
            |_, arguments, _| traversal(sized(&arguments[0]).min(sized(&arguments[1])), CHARACTER)
        }
        "add_string" | "add_bytes" => {
            |_, arguments, _| traversal(arguments[0].size() + arguments[1].size(), CHARACTER)
        }
        "matches_string" => |_, arguments, _| regex(&arguments[0], arguments[1].size()),
        "contains_string" => {
            |_, arguments, _| first(arguments).saturating_mul(traversal(arguments[1].size(), CHARACTER))
        }
        _ => return None,
    })
}
