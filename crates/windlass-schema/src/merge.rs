//! Strategic merge patch: a merge patch with merged lists. The schema has the lists to merge, and the merge
//! keys.

mod list;

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};

use crate::go::{go_map, go_number, go_quote, go_type};
use crate::graph::{NodeRef, Schema, Type};

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

/// The error of a strategic merge patch that cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchError {
    text: String,
    malformed: bool,
}

impl PatchError {
    /// Creates an error about the patch.
    fn malformed(text: impl Into<String>) -> Self {
        Self { text: text.into(), malformed: true }
    }

    /// Returns a mismatch between the patch and the object.
    fn mismatch(text: impl Into<String>) -> Self {
        Self { text: text.into(), malformed: false }
    }

    /// Returns whether the patch is malformed. kube-apiserver then answers 400, and 500 if the patch does not
    /// match the object.
    pub fn is_malformed(&self) -> bool {
        self.malformed
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for PatchError {}

type Result<T> = std::result::Result<T, PatchError>;

/// Applies a strategic merge patch.
///
/// A `null` deletes the member. Lists with a merge strategy are merged by merge key; other lists are
/// replaced. The directives `$patch`, `$retainKeys`, `$setElementOrder/…` and `$deleteFromPrimitiveList/…`
/// work as in Kubernetes.
///
/// ```
/// use serde_json::json;
///
/// let schema = windlass_schema::Catalog::builtin().schema("", "v1", "Service").unwrap();
/// let service = json!({"spec": {"ports": [{"port": 80, "name": "web"}]}});
/// let patch = json!({"spec": {"ports": [{"port": 80, "name": "http"}, {"port": 443}]}});
/// assert_eq!(
///     windlass_schema::strategic_merge(&schema, service, patch).unwrap(),
///     json!({"spec": {"ports": [{"port": 80, "name": "http"}, {"port": 443}]}}),
/// );
/// ```
///
/// # Errors
/// A directive is malformed, a list element lacks the merge key, or a value of the patch has another JSON
/// type than the value in the object.
pub fn strategic_merge(schema: &Schema, original: Value, patch: Value) -> Result<Value> {
    let (Value::Object(original), Value::Object(patch)) = (original, patch) else {
        return Err(PatchError::malformed("invalid JSON document"));
    };
    map(original, patch, Some(schema.root())).map(Value::Object)
}

fn map(
    mut original: Map<String, Value>,
    mut patch: Map<String, Value>,
    schema: Option<NodeRef<'_>>,
) -> Result<Map<String, Value>> {
    if let Some(directive) = patch.remove(PATCH) {
        return match directive.as_str() {
            Some("replace") => Ok(patch),
            Some("delete") => Ok(Map::new()),
            _ => {
                patch.insert(PATCH.to_owned(), directive.clone());
                Err(unknown_directive(&directive, &patch))
            }
        };
    }
    retain_keys(&mut original, &mut patch)?;
    set_orders(&mut original, &mut patch, schema)?;
    for (key, value) in patch {
        match key.strip_prefix(DELETE_FROM) {
            Some(name) => delete_from(&mut original, name, &value)?,
            None => member(&mut original, key, value, schema)?,
        }
    }
    Ok(original)
}

/// Merges a member of a patch into an object.
fn member(
    original: &mut Map<String, Value>,
    key: String,
    value: Value,
    schema: Option<NodeRef<'_>>,
) -> Result<()> {
    let inner = schema.and_then(|schema| schema.member(&key));
    let merged = match (original.remove(&key), value) {
        (Some(Value::Object(_)), Value::Object(_)) | (Some(Value::Array(_)), Value::Array(_))
            if is_raw_extension(schema) =>
        {
            let field = go_quote(&key);
            let why = format!("unable to find api field in struct RawExtension for the json field {field}");
            return Err(PatchError::mismatch(why));
        }
        (_, Value::Null) => None,
        (Some(Value::Object(_)), Value::Object(patch)) if is_replaced(inner) => Some(patch.into()),
        (Some(Value::Object(original)), Value::Object(patch)) => Some(map(original, patch, inner)?.into()),
        (Some(Value::Array(original)), Value::Array(patch)) => {
            Some(list::merge(original, patch, inner)?.into())
        }
        (Some(Value::String(_)), value @ Value::String(_)) => Some(value),
        (_, mut value) => {
            discard_nulls(&mut value);
            without_directives(value)
        }
    };
    if let Some(merged) = merged {
        original.insert(key, merged);
    }
    Ok(())
}

/// Returns whether the members of an object are unknown to the real server. The real server then does not
/// know how to merge the members.
fn is_raw_extension(schema: Option<NodeRef<'_>>) -> bool {
    schema.and_then(NodeRef::definition).is_some_and(|name| name.ends_with("RawExtension"))
}

/// Returns whether the schema says that an object is replaced instead of merged.
fn is_replaced(schema: Option<NodeRef<'_>>) -> bool {
    schema.and_then(NodeRef::patch_meta).is_some_and(|meta| meta.replace)
}

/// Applies `$retainKeys`: removes the members that the directive does not name.
fn retain_keys(original: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<()> {
    let Some(directive) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::malformed("invalid patch format of retainKeys");
    let keys: HashSet<&str> =
        directive.as_array().ok_or_else(malformed)?.iter().filter_map(Value::as_str).collect();
    let retained = |key: &str| keys.contains(key);
    let is_directive = |key: &str| key.starts_with(DELETE_FROM) || key.starts_with(SET_ORDER);
    if patch.iter().any(|(key, value)| !value.is_null() && !is_directive(key) && !retained(key)) {
        return Err(malformed());
    }
    original.retain(|key, _| retained(key));
    Ok(())
}

/// Returns the name of the Go struct of an object, or `None` for a map.
fn struct_name(schema: NodeRef<'_>) -> Option<&str> {
    let is_struct = schema.kind() == Type::Object && schema.additional().is_none();
    schema.definition().filter(|_| is_struct)?.rsplit('.').next()
}

/// Returns the error of Go for a list that the struct lacks.
fn unknown_field(owner: &str, name: &str) -> PatchError {
    let field = go_quote(name);
    PatchError::mismatch(format!("unable to find api field in struct {owner} for the json field {field}"))
}

/// Applies `$setElementOrder/name`: merges the list and sorts it in the given order.
fn set_orders(
    original: &mut Map<String, Value>,
    patch: &mut Map<String, Value>,
    schema: Option<NodeRef<'_>>,
) -> Result<()> {
    let directives: Vec<String> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            other => return Err(wrong_type("[]interface {}", &other.unwrap_or_default())),
        };
        let name = directive.strip_prefix(SET_ORDER).and_then(|rest| rest.strip_prefix('/'));
        let malformed = || PatchError::malformed("invalid patch format of setElementOrder list");
        let name = name.ok_or_else(malformed)?;
        let inner = schema.and_then(|schema| schema.member(name));
        if let Some(owner) = schema.filter(|_| inner.is_none()).and_then(struct_name) {
            return Err(unknown_field(owner, name));
        }
        let (ours, theirs) = (take_list(original, name)?, take_list(patch, name)?);
        list::check_order(theirs.as_deref().unwrap_or_default(), &order, inner)?;
        let live = ours.clone().unwrap_or_default();
        let live = list::live_order(live, theirs.as_deref().unwrap_or_default(), inner);
        let merged = match (ours, theirs) {
            (None, None) => continue,
            (Some(ours), None) => ours,
            (None, Some(theirs)) => match without_directives(Value::Array(theirs)) {
                Some(Value::Array(items)) => items,
                _ => continue,
            },
            (Some(ours), Some(theirs)) => list::merge(ours, theirs, inner)?,
        };
        original.insert(name.to_owned(), list::ordered(merged, &order, &live, inner)?.into());
    }
    Ok(())
}

/// Removes a list from an object and returns the list.
fn take_list(members: &mut Map<String, Value>, name: &str) -> Result<Option<Vec<Value>>> {
    match members.remove(name) {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(wrong_type("[]interface {}", &other)),
    }
}

/// Applies `$deleteFromPrimitiveList/name`: removes scalars from a list.
fn delete_from(original: &mut Map<String, Value>, rest: &str, value: &Value) -> Result<()> {
    let name = rest.strip_prefix('/');
    let name = name.ok_or_else(|| PatchError::malformed("invalid patch format of primitive list"))?;
    match (original.get_mut(name), value) {
        (None, _) => Ok(()),
        (Some(_), Value::Null) => {
            original.remove(name);
            Ok(())
        }
        (Some(Value::Array(items)), Value::Array(gone)) => {
            list::holds_objects(items, gone)?;
            let gone: HashSet<String> = gone.iter().map(Value::to_string).collect();
            items.retain(|item| !gone.contains(&item.to_string()));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Removes `null`s from a value that is new in the object, because the `null`s have no member to delete.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => members.retain(|_, value| {
            discard_nulls(value);
            !value.is_null()
        }),
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// Returns the value without directives, or `None` for a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => {
            let kept = members.into_iter().filter_map(|(key, value)| Some((key, without_directives(value)?)));
            Some(kept.collect::<Map<_, _>>().into())
        }
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        other => Some(other),
    }
}

fn unknown_directive(directive: &Value, patch: &Map<String, Value>) -> PatchError {
    let directive = printed_as_text(directive);
    PatchError::mismatch(format!("unknown patch type: {directive} in map: {}", go_map(patch)))
}

/// Returns an element in Go's form inside of a text.
fn printed_inside(value: &Value) -> String {
    if value.is_null() { "<nil>".to_owned() } else { printed_as_text(value) }
}

/// Returns a value in Go's form of a text (`%s`).
fn printed_as_text(value: &Value) -> String {
    match value {
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(value) => format!("%!s(bool={value})"),
        Value::Number(number) => format!("%!s({}={})", go_type(value), go_number(number)),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(printed_inside).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| format!("{name}:{}", printed_inside(value)));
            format!("map[{}]", members.collect::<Vec<_>>().join(" "))
        }
    }
}

fn wrong_type(expected: &str, actual: &Value) -> PatchError {
    // Go has no type to print for nil.
    let actual = if actual.is_null() { "%!s(<nil>)" } else { go_type(actual) };
    PatchError::mismatch(format!("expected a {expected}, but received a {actual}"))
}

#[cfg(test)]
mod tests;
