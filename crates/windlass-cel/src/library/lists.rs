//! Functions of lists: those of Kubernetes, and version 3 of cel-go's extension.

use std::cmp::Ordering;

use super::{as_int, as_list};
use crate::declare::Row;
use crate::error::Error;
use crate::meter::Meter;
use crate::value::{List, Value, compare, equal};

#[rustfmt::skip]
pub(super) const FUNCTIONS: &[Row] = &[
    Row("isSorted", "list_int_is_sorted_bool", ".list(int)", "bool", is_sorted),
    Row("isSorted", "list_uint_is_sorted_bool", ".list(uint)", "bool", is_sorted),
    Row("isSorted", "list_double_is_sorted_bool", ".list(double)", "bool", is_sorted),
    Row("isSorted", "list_bool_is_sorted_bool", ".list(bool)", "bool", is_sorted),
    Row("isSorted", "list_duration_is_sorted_bool", ".list(duration)", "bool", is_sorted),
    Row("isSorted", "list_timestamp_is_sorted_bool", ".list(timestamp)", "bool", is_sorted),
    Row("isSorted", "list_string_is_sorted_bool", ".list(string)", "bool", is_sorted),
    Row("isSorted", "list_bytes_is_sorted_bool", ".list(bytes)", "bool", is_sorted),
    Row("sum", "list_int_sum_int", ".list(int)", "int", |meter, v| sum(meter, v, Value::Int(0))),
    Row("sum", "list_uint_sum_uint", ".list(uint)", "uint", |meter, v| sum(meter, v, Value::Uint(0))),
    Row("sum", "list_double_sum_double", ".list(double)", "double", |meter, v| sum(meter, v, Value::Double(0.0))),
    Row("sum", "list_duration_sum_duration", ".list(duration)", "duration", |meter, v| sum(meter, v, Value::Duration(0))),
    Row("max", "list_int_max_int", ".list(int)", "int", |meter, v| extreme(meter, v, "max", Ordering::Less)),
    Row("max", "list_uint_max_uint", ".list(uint)", "uint", |meter, v| extreme(meter, v, "max", Ordering::Less)),
    Row("max", "list_double_max_double", ".list(double)", "double", |meter, v| extreme(meter, v, "max", Ordering::Less)),
    Row("max", "list_bool_max_bool", ".list(bool)", "bool", |meter, v| extreme(meter, v, "max", Ordering::Less)),
    Row("max", "list_duration_max_duration", ".list(duration)", "duration", |meter, v| extreme(meter, v, "max", Ordering::Less)),
    Row("max", "list_timestamp_max_timestamp", ".list(timestamp)", "timestamp", |meter, v| extreme(meter, v, "max", Ordering::Less)),
    Row("max", "list_string_max_string", ".list(string)", "string", |meter, v| extreme(meter, v, "max", Ordering::Less)),
    Row("max", "list_bytes_max_bytes", ".list(bytes)", "bytes", |meter, v| extreme(meter, v, "max", Ordering::Less)),
    Row("min", "list_int_min_int", ".list(int)", "int", |meter, v| extreme(meter, v, "min", Ordering::Greater)),
    Row("min", "list_uint_min_uint", ".list(uint)", "uint", |meter, v| extreme(meter, v, "min", Ordering::Greater)),
    Row("min", "list_double_min_double", ".list(double)", "double", |meter, v| extreme(meter, v, "min", Ordering::Greater)),
    Row("min", "list_bool_min_bool", ".list(bool)", "bool", |meter, v| extreme(meter, v, "min", Ordering::Greater)),
    Row("min", "list_duration_min_duration", ".list(duration)", "duration", |meter, v| extreme(meter, v, "min", Ordering::Greater)),
    Row("min", "list_timestamp_min_timestamp", ".list(timestamp)", "timestamp", |meter, v| extreme(meter, v, "min", Ordering::Greater)),
    Row("min", "list_string_min_string", ".list(string)", "string", |meter, v| extreme(meter, v, "min", Ordering::Greater)),
    Row("min", "list_bytes_min_bytes", ".list(bytes)", "bytes", |meter, v| extreme(meter, v, "min", Ordering::Greater)),
    Row("indexOf", "list_a_index_of_int", ".list(A) A", "int", |meter, v| index_of(meter, v, false)),
    Row("lastIndexOf", "list_a_last_index_of_int", ".list(A) A", "int", |meter, v| index_of(meter, v, true)),
    Row("slice", "list_slice", ".list(T) int int", "list(T)", slice),
    Row("flatten", "list_flatten", ".list(list(T))", "list(T)", |meter, v| flatten(meter, &v[0], 1)),
    Row("flatten", "list_flatten_int", ".list(dyn) int", "list(dyn)", |meter, v| {
        let depth = as_int(&v[1])?;
        flatten(meter, &v[0], depth)
    }),
    Row("lists.range", "lists_range", "int", "list(int)", range),
    Row("reverse", "list_reverse", ".list(T)", "list(T)", reverse),
    Row("distinct", "list_distinct", ".list(T)", "list(T)", distinct),
    // Steps of macros, implemented by the evaluation.
    Row("cel.@mapInsert", "@mapInsert_map_key_value", "map(K, V) K V", "map(K, V)", |_, _| Err(Error::no_overload())),
    Row("cel.@mapInsert", "@mapInsert_map_map", "map(K, V) map(K, V)", "map(K, V)", |_, _| Err(Error::no_overload())),
];

/// Functions whose overloads share an implementation.
#[rustfmt::skip]
pub(super) const SORTING: &[Row] = &[
    Row("sort", "list_int_sort", ".list(int)", "list(int)", sort),
    Row("sort", "list_uint_sort", ".list(uint)", "list(uint)", sort),
    Row("sort", "list_double_sort", ".list(double)", "list(double)", sort),
    Row("sort", "list_bool_sort", ".list(bool)", "list(bool)", sort),
    Row("sort", "list_google.protobuf.Duration_sort", ".list(duration)", "list(duration)", sort),
    Row("sort", "list_google.protobuf.Timestamp_sort", ".list(timestamp)", "list(timestamp)", sort),
    Row("sort", "list_string_sort", ".list(string)", "list(string)", sort),
    Row("sort", "list_bytes_sort", ".list(bytes)", "list(bytes)", sort),
    Row("@sortByAssociatedKeys", "list_int_sortByAssociatedKeys", ".list(T) list(int)", "list(T)", sort),
    Row("@sortByAssociatedKeys", "list_uint_sortByAssociatedKeys", ".list(T) list(uint)", "list(T)", sort),
    Row("@sortByAssociatedKeys", "list_double_sortByAssociatedKeys", ".list(T) list(double)", "list(T)", sort),
    Row("@sortByAssociatedKeys", "list_bool_sortByAssociatedKeys", ".list(T) list(bool)", "list(T)", sort),
    Row("@sortByAssociatedKeys", "list_google.protobuf.Duration_sortByAssociatedKeys", ".list(T) list(duration)", "list(T)", sort),
    Row("@sortByAssociatedKeys", "list_google.protobuf.Timestamp_sortByAssociatedKeys", ".list(T) list(timestamp)", "list(T)", sort),
    Row("@sortByAssociatedKeys", "list_string_sortByAssociatedKeys", ".list(T) list(string)", "list(T)", sort),
    Row("@sortByAssociatedKeys", "list_bytes_sortByAssociatedKeys", ".list(T) list(bytes)", "list(T)", sort),
];

/// Returns a list of the values.
fn list_of<'a>(meter: &mut Meter, values: Vec<Value<'a>>) -> Result<Value<'a>, Error> {
    meter.allocate(values.len() * size_of::<Value<'_>>())?;
    Ok(Value::List(List::of(values)))
}

fn is_sorted<'a>(meter: &mut Meter, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let mut previous: Option<Value<'_>> = None;
    for element in as_list(&arguments[0])?.iter() {
        let element = element?;
        if let Some(previous) = &previous
            && compare(meter, previous, &element)? == Ordering::Greater
        {
            return Ok(Value::Bool(false));
        }
        previous = Some(element);
    }
    Ok(Value::Bool(true))
}

fn sum<'a>(meter: &mut Meter, arguments: &[Value<'a>], zero: Value<'a>) -> Result<Value<'a>, Error> {
    let mut total = zero;
    for element in as_list(&arguments[0])?.iter() {
        meter.elements(1)?;
        total = match (total, element?) {
            (Value::Int(a), Value::Int(b)) => {
                Value::Int(a.checked_add(b).ok_or(Error::fixed("integer overflow"))?)
            }
            (Value::Uint(a), Value::Uint(b)) => {
                Value::Uint(a.checked_add(b).ok_or(Error::fixed("unsigned integer overflow"))?)
            }
            (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
            (Value::Duration(a), Value::Duration(b)) => {
                Value::Duration(a.checked_add(b).ok_or(Error::fixed("duration overflow"))?)
            }
            _ => return Err(Error::no_overload()),
        };
    }
    Ok(total)
}

/// Returns the first element that is smaller or larger than all other elements: `worse` is how the others compare.
fn extreme<'a>(
    meter: &mut Meter,
    arguments: &[Value<'a>],
    name: &str,
    worse: Ordering,
) -> Result<Value<'a>, Error> {
    let mut best: Option<Value<'a>> = None;
    for element in as_list(&arguments[0])?.iter() {
        let element = element?;
        let replaces = match &best {
            None => true,
            Some(best) => compare(meter, best, &element)? == worse,
        };
        if replaces {
            best = Some(element);
        }
    }
    best.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

fn index_of<'a>(meter: &mut Meter, arguments: &[Value<'a>], last: bool) -> Result<Value<'a>, Error> {
    let mut found = -1;
    for (index, element) in as_list(&arguments[0])?.iter().enumerate() {
        match element.and_then(|element| equal(meter, &element, &arguments[1])) {
            Ok(true) => {
                found = index as i64;
                if !last {
                    break;
                }
            }
            Err(error) if error.is_fatal() => return Err(error),
            _ => {}
        }
    }
    Ok(Value::Int(found))
}

fn slice<'a>(meter: &mut Meter, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let list = as_list(&arguments[0])?;
    let (start, end) = (as_int(&arguments[1])?, as_int(&arguments[2])?);
    let fail = |reason: String| Err(Error::new(format!("cannot slice({start}, {end}), {reason}")));
    if start < 0 || end < 0 {
        return fail("negative indexes not supported".to_owned());
    }
    if start > end {
        return fail("start index must be less than or equal to end index".to_owned());
    }
    if (list.len() as i64) < end {
        return fail(format!("list is length {}", list.len()));
    }
    meter.elements(end as usize)?;
    let elements: Result<Vec<_>, Error> =
        list.iter().skip(start as usize).take((end - start) as usize).collect();
    list_of(meter, elements?)
}

fn flatten<'a>(meter: &mut Meter, list: &Value<'a>, depth: i64) -> Result<Value<'a>, Error> {
    if depth < 0 {
        return Err(Error::fixed("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten_into(meter, as_list(list)?, depth, &mut flat)?;
    Ok(Value::List(List::of(flat)))
}

fn flatten_into<'a>(
    meter: &mut Meter,
    list: &List<'a>,
    depth: i64,
    flat: &mut Vec<Value<'a>>,
) -> Result<(), Error> {
    for element in list.iter() {
        meter.elements(1)?;
        match element? {
            Value::List(inner) if depth > 0 => flatten_into(meter, &inner, depth - 1, flat)?,
            other => {
                meter.allocate(size_of::<Value<'_>>())?;
                flat.push(other);
            }
        }
    }
    Ok(())
}

fn range<'a>(meter: &mut Meter, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let count = as_int(&arguments[0])?.max(0);
    meter.allocate(usize::try_from(count).unwrap_or(usize::MAX).saturating_mul(size_of::<Value<'_>>()))?;
    Ok(Value::List(List::of((0..count).map(Value::Int).collect())))
}

fn reverse<'a>(meter: &mut Meter, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let list = as_list(&arguments[0])?;
    meter.elements(list.len())?;
    meter.allocate(list.len() * size_of::<Value<'_>>())?;
    let mut elements: Vec<Value<'a>> = list.iter().collect::<Result<_, Error>>()?;
    elements.reverse();
    Ok(Value::List(List::of(elements)))
}

fn distinct<'a>(meter: &mut Meter, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let mut unique: Vec<Value<'a>> = Vec::new();
    for element in as_list(&arguments[0])?.iter() {
        let element = element?;
        let mut seen = false;
        for known in &unique {
            match equal(meter, &element, known) {
                Ok(true) => {
                    seen = true;
                    break;
                }
                Err(error) if error.is_fatal() => return Err(error),
                _ => {}
            }
        }
        if !seen {
            meter.allocate(size_of::<Value<'_>>())?;
            unique.push(element);
        }
    }
    Ok(Value::List(List::of(unique)))
}

/// Sorts a list, by its elements or by the keys of the second list.
fn sort<'a>(meter: &mut Meter, arguments: &[Value<'a>]) -> Result<Value<'a>, Error> {
    let list = as_list(&arguments[0])?;
    let keys = as_list(arguments.get(1).unwrap_or(&arguments[0]))?;
    if list.len() != keys.len() {
        return Err(Error::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and \
             {} elements respectively",
            list.len(),
            keys.len()
        )));
    }
    meter.elements(list.len())?;
    meter.allocate(list.len() * 2 * size_of::<Value<'_>>())?;
    let keys: Vec<Value<'a>> = keys.iter().collect::<Result<_, Error>>()?;
    let Some(first) = keys.first() else { return Ok(arguments[0].clone()) };
    if !is_comparable(first) {
        return Err(Error::fixed("list elements must be comparable"));
    }
    if keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(Error::fixed("list elements must have the same type"));
    }
    let elements: Vec<Value<'a>> = list.iter().collect::<Result<_, Error>>()?;
    let mut order: Vec<usize> = (0..keys.len()).collect();
    let mut failure = None;
    order.sort_by(|one, other| {
        if failure.is_some() {
            return Ordering::Equal;
        }
        compare(meter, &keys[*one], &keys[*other]).unwrap_or_else(|error| {
            if error.is_fatal() {
                failure = Some(error);
            }
            Ordering::Equal
        })
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(Value::List(List::of(order.into_iter().map(|index| elements[index].clone()).collect()))),
    }
}

fn is_comparable(value: &Value<'_>) -> bool {
    !matches!(
        value,
        Value::Null
            | Value::List(_)
            | Value::Map(_)
            | Value::Type(_)
            | Value::Optional(_)
            | Value::Library(_)
    )
}
