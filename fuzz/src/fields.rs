//! Targets for field ownership.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};
use windlass_schema::fields::{
    Convert, ConvertError, Duplicates, FieldSet, Managers, Updater, compare, extract, merge, remove,
    validate_typed,
};
use windlass_schema::{Catalog, NodeRef, Schema};
use windlass_wire::from_json_with_duplicates;

use crate::split;

/// A set is written as read, and set operations hold.
pub(crate) fn fields_v1(data: &[u8]) {
    let (first, second) = split(data);
    let read = |bytes| {
        let (value, _) = from_json_with_duplicates(bytes).ok()?;
        FieldSet::from_v1(&value).ok()
    };
    let (Some(left), right) = (read(first), read(second).unwrap_or_default()) else { return };
    let mut text = String::new();
    left.write_v1(&mut text);
    let again = serde_json::from_str::<Value>(&text).ok().and_then(|value| FieldSet::from_v1(&value).ok());
    assert_eq!(again.as_ref(), Some(&left), "the text is another set");
    assert_eq!(FieldSet::from_v1(&left.to_v1()).as_ref(), Ok(&left), "the value is another set");
    let (both, rest) = (left.intersection(&right), left.difference(&right));
    assert_eq!(rest.union(&both), left, "difference and intersection are not the whole");
    assert_eq!(left.union(&right).len() + both.len(), left.len() + right.len(), "paths are lost");
    assert!(left.iter().all(|path| left.contains(&path)), "a path is not found");
}

/// Applies, updates and the functions below never panic. A second forced apply of an object without empty
/// values has no effect.
pub(crate) fn apply(data: &[u8]) {
    let read = |bytes| from_json_with_duplicates(bytes).ok().map(|(value, _)| value);
    let (first, rest) = split(data);
    let (second, third) = split(rest);
    let (Some(live), Some(config)) = (read(first), read(second)) else { return };
    let fields = read(third).and_then(|fields| FieldSet::from_v1(&fields).ok()).unwrap_or_default();
    for schema in [Catalog::builtin().schema("", "v1", "Pod"), Some(custom())].into_iter().flatten() {
        pieces(&schema, &live, &config, &fields);
        let valid = |value, duplicates| validate_typed(schema.root(), value, duplicates).is_ok();
        if valid(&live, Duplicates::Allow) && valid(&config, Duplicates::Forbid) {
            twice(&OneVersion(schema), live.clone(), &config);
        }
    }
}

fn pieces(schema: &Schema, live: &Value, config: &Value, fields: &FieldSet) {
    let root = schema.root();
    if let Ok(changed) = compare(root, live, config) {
        let shared = changed.added.intersection(&changed.removed);
        assert!(shared.is_empty() || live != config, "equal objects differ");
    }
    _ = merge(root, live, config);
    _ = FieldSet::of(root, live);
    remove(root, live, fields);
    extract(root, live, fields, true);
    fields.reconciled(root);
    fields.with_named_fields(root);
}

fn twice(kind: &OneVersion, start: Value, config: &Value) {
    let updater = Updater::new(kind);
    let managers = ready(updater.update(&Value::Null, &start, "v1", Managers::default(), "updater"));
    let Ok(managers) = managers else { return };
    let Ok((object, managers)) = ready(updater.apply(&start, config, "v1", managers, "a", true)) else {
        return;
    };
    let live = object.unwrap_or(start);
    let again = ready(updater.apply(&live, config, "v1", managers.clone(), "a", false));
    let (object, after) = again.expect("a second apply has no conflicts");
    assert_eq!(after, managers, "a second apply changes the managers");
    assert!(object.is_none() || !is_full(config), "a second apply changes the object");
}

/// Returns whether no part of a value is `null` or empty: an apply that removes all fields of an object
/// leaves `null`.
fn is_full(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty() && items.iter().all(is_full),
        Value::Object(members) => !members.is_empty() && members.values().all(is_full),
        _ => true,
    }
}

/// A custom resource with the kinds of lists and maps that there are.
fn custom() -> Schema {
    let scalars = json!({"type": "string"});
    let element = json!({"type": "object", "properties": {
        "a": {"type": "integer"}, "b": {"type": "string", "default": "x"}, "c": {"x-kubernetes-preserve-unknown-fields": true},
    }});
    Schema::compile(&json!({"type": "object", "properties": {
        "set": {"type": "array", "items": scalars, "x-kubernetes-list-type": "set"},
        "list": {"type": "array", "items": element},
        "map": {"type": "array", "items": element, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]},
        "atomic": {"type": "object", "additionalProperties": scalars, "x-kubernetes-map-type": "atomic"},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
    }}))
}

struct OneVersion(Schema);

impl Convert for OneVersion {
    fn schema(&self, api_version: &str) -> Option<NodeRef<'_>> {
        (api_version == "v1").then(|| self.0.root())
    }

    async fn convert(&self, _: &Value, _: &str, to: &str) -> Result<Value, ConvertError> {
        Err(ConvertError::MissingVersion(to.to_owned()))
    }
}

/// Runs a future that never waits.
fn ready<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the future waits"),
    }
}
