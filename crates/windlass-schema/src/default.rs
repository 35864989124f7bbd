//! Defaulting, and the effect of Go's `omitempty` on empty values.

use serde_json::{Map, Value};

use crate::catalog::object_meta;
use crate::go::{decode_base64, encode_base64};
use crate::graph::{Additional, Edge, EmptyPolicy, NodeRef, Schema, Target, Type};
use crate::timestamp;
use crate::{Quantity, Rounding};

/// Applies the defaults of the schema and drops `null` from fields that are not nullable, as the API server does when
/// it decodes an object.
///
/// An object of a built-in kind also changes like a value that is decoded to the Go type and encoded again:
/// empty values that Go omits are removed, and fields that Go always writes (`status: {}`) are added. The
/// function is idempotent.
///
/// If the defaults would add more than 32 MiB, some are left out, and the function returns false: such an object is larger than any
/// object that a server stores.
pub fn default(schema: &Schema, object: &mut Value) -> bool {
    whole_numbers(object);
    let of_resources = rounding_of_resources(object);
    drop_empty_rounding(object, schema.root(), of_resources);
    let mut budget = DefaultingBudget::default();
    fill(object, schema.root(), &mut budget);
    !budget.is_exceeded
}

/// Applies the defaults of the schema of a custom resource, as [`default`], but keeps `null` in fields that
/// are neither nullable nor have a default. Such a `null` is invalid.
pub fn default_missing(schema: &Schema, object: &mut Value) {
    whole_numbers(object);
    fill(object, schema.root(), &mut DefaultingBudget::default());
}

/// The memory that defaults may add to an object, in bytes. Without a limit, a list of a million empty
/// elements with defaults of a kilobyte would take all memory.
const MAX_GROWTH: usize = 32 << 20;

/// The memory of an object's first members.
const MEMBERS_SIZE: usize = 640;

/// The memory that defaults may still add.
struct DefaultingBudget {
    left: usize,
    /// True if a default was left out.
    is_exceeded: bool,
}

impl Default for DefaultingBudget {
    fn default() -> Self {
        Self { left: MAX_GROWTH, is_exceeded: false }
    }
}

impl DefaultingBudget {
    /// Inserts the value, unless the value exceeds the allowed memory.
    fn insert(&mut self, members: &mut Map<String, Value>, name: &str, value: Value) {
        let first = if members.is_empty() { MEMBERS_SIZE } else { 0 };
        if self.allows(first + name.len() + memory(&value)) {
            members.insert(name.to_owned(), value);
        }
    }

    fn allows(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.left = left.unwrap_or(0);
        self.is_exceeded |= left.is_none();
        left.is_some()
    }
}

/// Estimates the memory of a value in bytes.
fn memory(value: &Value) -> usize {
    let own = 64;
    own + match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(memory).sum(),
        Value::Object(members) => {
            let inner: usize = members.iter().map(|(name, value)| name.len() + memory(value)).sum();
            if members.is_empty() { 0 } else { MEMBERS_SIZE + inner }
        }
        _ => 0,
    }
}

/// Converts floats without a fraction to integers (`1.0` to `1`), as Go does.
pub(crate) fn whole_numbers(value: &mut Value) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or(f64::NAN);
            if float.fract() == 0.0 && float.abs() < EXACT {
                *value = Value::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(members) => members.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

fn is_unwanted_null(value: &Value, schema: NodeRef<'_>) -> bool {
    value.is_null() && !schema.is_nullable()
}

/// Returns the rounding of quantities in maps of an object. In these groups, a map of quantities is not a
/// list of resources, or the server does not round the list.
fn rounding_of_resources(object: &Value) -> Rounding {
    let version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    match version.split_once('/') {
        Some(("node.k8s.io" | "resource.k8s.io", _)) => Rounding::Billionth,
        _ => Rounding::Thousandth,
    }
}

/// Removes the values that Go's encoder would omit.
pub(crate) fn drop_empty(value: &mut Value, schema: NodeRef<'_>) {
    drop_empty_rounding(value, schema, Rounding::Billionth);
}

/// Works like [`drop_empty`], with the rounding of the quantities in maps.
fn drop_empty_rounding(value: &mut Value, schema: NodeRef<'_>, of_maps: Rounding) {
    match value {
        Value::Object(members) => members.retain(|name, value| {
            let Some(member) = schema.member(name) else { return true };
            if is_unwanted_null(value, member) {
                let of_map = schema.property(name).is_none();
                match member.format() {
                    Some("quantity") if of_map => *value = "0".into(),
                    // Only maps of Go types have a policy for empty values: custom resources are not Go types.
                    Some("byte") if of_map && schema.empty_policy() != EmptyPolicy::Keep => {
                        *value = "".into();
                    }
                    _ => {}
                }
                // The default of a custom resource, or the zero value of a Go map's element, replaces the null later.
                return member.default().is_some() && (member.is_custom() || of_map) || !value.is_null();
            }
            drop_empty_rounding(value, member, of_maps);
            let is_field = schema.property(name).is_some();
            canonicalize_quantity(value, member, if is_field { Rounding::Billionth } else { of_maps });
            if is_field && member.is_of_go() {
                round_to_float(value, member);
                canonicalize_time(value, member);
            }
            if is_field && member.is_of_go() || !is_field && schema.empty_policy() != EmptyPolicy::Keep {
                encode_bytes(value, member);
            }
            !is_omitted(value, member)
        }),
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for item in items {
                drop_empty_rounding(item, schema, of_maps);
            }
        }
        _ => {}
    }
}

/// Rounds a whole number that a float does not hold exactly, in a field that is a float in Go.
fn round_to_float(value: &mut Value, schema: NodeRef<'_>) {
    if schema.kind() != Type::Number {
        return;
    }
    let exact = 1_u64 << f64::MANTISSA_DIGITS;
    let float = match &*value {
        Value::Number(number) if number.as_u64().is_some_and(|number| number > exact) => number.as_f64(),
        Value::Number(number) if number.as_i64().is_some_and(|number| number.unsigned_abs() > exact) => {
            number.as_f64()
        }
        _ => return,
    };
    // A float is written with the fewest digits that distinguish the float from other floats, and zeros.
    let rounded = float.and_then(|float| serde_json::from_str(&format!("{float}")).ok());
    *value = rounded.unwrap_or_else(|| value.clone());
}

/// Writes bytes in base64 as Go does: without line breaks and spare bits. Go takes a list of bytes for bytes as well.
fn encode_bytes(value: &mut Value, schema: NodeRef<'_>) {
    if schema.format() != Some("byte") {
        return;
    }
    // Whole groups of four letters have no spare bits.
    if let Value::String(text) = value
        && (text.ends_with('=') || text.contains(['\r', '\n']))
        && let Some(bytes) = decode_base64(text)
    {
        *value = encode_base64(&bytes).into();
    }
    if let Value::Array(items) = value {
        #[expect(clippy::cast_possible_truncation, reason = "Go converts in the same way")]
        let bytes: Vec<u8> = items.iter().map(|item| item.as_i64().unwrap_or(0) as u8).collect();
        *value = encode_base64(&bytes).into();
    }
}

/// Writes a number in plain notation: without an exponent, unless the number is very large.
fn decimal(number: &serde_json::Number) -> String {
    match number.as_f64().filter(|float| number.is_f64() && float.abs() < 1e15) {
        Some(float) => float.to_string(),
        None => number.to_string(),
    }
}

/// Writes a quantity in the stored form of the server; any other value is left unchanged.
fn canonicalize_quantity(value: &mut Value, schema: NodeRef<'_>, rounding: Rounding) {
    if schema.format() != Some("quantity") {
        return;
    }
    let canonical = match &*value {
        Value::String(text) => Quantity::canonical(text.trim(), rounding),
        Value::Number(number) => Quantity::canonical(&decimal(number), rounding),
        _ => return,
    };
    if let Ok(canonical) = canonical {
        *value = canonical.into();
    }
}

/// Writes a time in the stored form of the server: in UTC, and without a fraction that the Go type lacks. The zero
/// time of Go becomes `null`.
fn canonicalize_time(value: &mut Value, schema: NodeRef<'_>) {
    let micros = match schema.format() {
        Some("date-time") => false,
        Some("micro-time") => true,
        _ => return,
    };
    if let Value::String(text) = &*value
        && let Ok(canonical) = timestamp::canonical(text, micros)
    {
        *value = canonical.map_or(Value::Null, Value::String);
    }
}

/// Returns whether Go's encoder omits the value.
fn is_omitted(value: &Value, schema: NodeRef<'_>) -> bool {
    let is_struct = schema.is_struct();
    match schema.empty_policy() {
        EmptyPolicy::Keep => false,
        // An empty value counts as absent; a default or null replaces it.
        EmptyPolicy::Always => !is_struct && is_empty(value),
        EmptyPolicy::Omit => !is_struct && is_empty(value),
        EmptyPolicy::OmitZero => is_empty(value),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

fn fill(value: &mut Value, schema: NodeRef<'_>, budget: &mut DefaultingBudget) {
    match value {
        Value::Object(members) => {
            fill_members(members, schema, budget);
            if let Some(metadata) = members.get_mut("metadata").filter(|_| schema.is_embedded_resource()) {
                drop_empty(metadata, object_meta().root());
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.items() else { return };
            for item in items {
                if is_unwanted_null(item, schema) {
                    replace_null(item, schema.default(), budget);
                }
                fill(item, schema, budget);
            }
        }
        _ => {}
    }
}

fn fill_members(members: &mut Map<String, Value>, schema: NodeRef<'_>, budget: &mut DefaultingBudget) {
    for (name, edge) in &schema.node.properties {
        let given = members.get(&**name);
        if given.is_none_or(|value| is_unwanted_null(value, schema.follow(edge)))
            && let Some(value) = value_when_absent(edge, schema.follow(edge))
        {
            budget.insert(members, name, value);
        }
    }
    for (name, value) in members {
        if let Some(property) = schema.property(name) {
            fill(value, property, budget);
        } else if let Some(Additional::Schema(edge)) = &schema.node.additional {
            let additional = schema.follow(edge);
            if is_unwanted_null(value, additional) {
                replace_null(value, edge.default.as_ref(), budget);
            }
            fill(value, additional, budget);
        }
    }
}

fn replace_null(value: &mut Value, default: Option<&Value>, budget: &mut DefaultingBudget) {
    if let Some(default) = default.filter(|default| budget.allows(memory(default))) {
        *value = default.clone();
    }
}

/// Returns the value of a property that is absent.
fn value_when_absent(edge: &Edge, schema: NodeRef<'_>) -> Option<Value> {
    if edge.observed || edge.published.is_none() {
        // The default of a custom resource, or a default that a real server was seen to apply.
        if let Some(default) = &edge.default {
            return Some(default.clone());
        }
    }
    let always = edge.empty == EmptyPolicy::Always;
    match &edge.default {
        Some(default) if !is_empty(default) => Some(default.clone()),
        Some(default) if default.is_object() => {
            (edge.empty != EmptyPolicy::OmitZero).then(|| default.clone())
        }
        Some(default) => always.then(|| default.clone()),
        None if matches!(edge.empty, EmptyPolicy::Keep | EmptyPolicy::OmitZero) => None,
        // Structs without a default: Go writes structs regardless of `omitempty`.
        None => match schema.format() {
            Some("quantity") => Some("0".into()),
            Some("date-time" | "micro-time") if matches!(edge.target, Target::Named(_)) => Some(Value::Null),
            Some("int-or-string") if always => Some(0.into()),
            _ if always && matches!(schema.kind(), Type::Array | Type::Object) => Some(Value::Null),
            _ => None,
        },
    }
}

impl NodeRef<'_> {
    /// Returns how Go's encoder treats an empty value of this field.
    pub fn empty_policy(self) -> EmptyPolicy {
        self.edge.map_or(EmptyPolicy::Keep, |edge| edge.empty)
    }

    /// Returns whether the value is a struct in Go, not a map.
    pub(crate) fn is_struct(self) -> bool {
        let named = self.edge.is_some_and(|edge| matches!(edge.target, Target::Named(_)));
        named && self.node.additional.is_none() && matches!(self.kind(), Type::Object | Type::Any)
    }

    /// Returns whether the field belongs to a custom resource; fields of built-in kinds all come from
    /// published types.
    fn is_custom(self) -> bool {
        self.edge.is_some_and(|edge| edge.published.is_none())
    }

    /// Returns whether this is a field of a Go type.
    fn is_of_go(self) -> bool {
        self.edge.is_some_and(|edge| edge.proto.is_some())
    }
}

#[cfg(test)]
mod tests;
