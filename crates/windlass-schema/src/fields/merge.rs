//! Merges an applied configuration into an object.

use serde_json::{Map, Value};

use super::atom::{Form, ListAtom, MapAtom, Scalar, TypeRef};
use super::error::TypedErrors;
use super::problem::{Problems, Walk, scalar_problem};
use super::value::is_same_scalar;
use crate::graph::NodeRef;

mod list;

/// Merges an applied configuration into an object. Both have passed [`validate_typed`](super::validate_typed), the
/// configuration without duplicates.
///
/// No field is removed. For leaves, atomic lists and atomic maps, the value of the configuration wins. The
/// elements of an associative list are in the order of the configuration; elements that only the object has
/// keep their positions as far as possible.
///
/// ```
/// use serde_json::json;
/// use windlass_schema::fields::merge;
///
/// let schema = windlass_schema::Catalog::builtin().schema("", "v1", "ConfigMap").unwrap();
/// let live = json!({"data": {"a": "1", "b": "1"}});
/// let config = json!({"data": {"a": "2"}});
/// assert_eq!(merge(schema.root(), &live, &config).unwrap(), json!({"data": {"a": "2", "b": "1"}}));
/// ```
///
/// # Errors
/// If a list of the configuration has elements with the same key, or a value does not match the schema.
pub fn merge(schema: NodeRef<'_>, base: &Value, config: &Value) -> Result<Value, TypedErrors> {
    let mut problems = Problems::default();
    let mut merged = base.clone();
    if !(Merger { problems: &mut problems }).value(TypeRef::root(schema), &mut merged, config, &Walk::ROOT) {
        merged = Value::Null;
    }
    problems.into_result(merged)
}

struct Merger<'m> {
    problems: &'m mut Problems,
}

impl Merger<'_> {
    /// Merges a value into another value; `null` stands for a missing value. Returns whether a value is left.
    fn value(&mut self, kind: TypeRef<'_>, base: &mut Value, config: &Value, walk: &Walk<'_>) -> bool {
        if self.problems.too_deep(walk) {
            return false;
        }
        match kind.atom().narrow(config).form() {
            Form::Scalar(scalar) => self.scalar(scalar, base, config, walk),
            Form::List(list) if list.associative => self.list(list, base, config, walk),
            Form::Map(map) if !map.atomic => self.map(map, base, config, walk),
            Form::List(_) | Form::Map(_) => replace(base, config),
            Form::None => {
                self.problems.add(walk, || "schema error: invalid atom: inlined".to_owned());
                false
            }
        }
    }

    fn scalar(&mut self, scalar: Scalar, base: &mut Value, config: &Value, walk: &Walk<'_>) -> bool {
        if let Some(new) = scalar_problem(scalar, config)
            && let Some(old) = scalar_problem(scalar, base)
        {
            self.problems.add(walk, || format!("lhs: {old}"));
            self.problems.add(walk, || format!("rhs: {new}"));
            return false;
        }
        replace(base, config)
    }

    fn map(&mut self, map: MapAtom<'_>, base: &mut Value, config: &Value, walk: &Walk<'_>) -> bool {
        let has_members = |value: &Value| value.as_object().is_some_and(|members| !members.is_empty());
        match (has_members(base), has_members(config)) {
            // An empty map is not the same as null.
            (false, false) => return replace(base, config),
            (true, false) => return true,
            (false, true) => *base = Value::Object(Map::new()),
            (true, true) => {}
        }
        let (Value::Object(base), Value::Object(config)) = (base, config) else { return false };
        for (name, value) in config {
            let walk = walk.field(name);
            if let Some(old) = base.get_mut(name) {
                let same = is_same_scalar(old, value);
                if !same && !self.value(map.member(name).0, old, value, &walk) {
                    base.remove(name);
                }
            } else {
                let mut new = Value::Null;
                if self.value(map.member(name).0, &mut new, value, &walk) {
                    base.insert(name.clone(), new);
                }
            }
        }
        !base.is_empty()
    }

    fn list(&mut self, list: ListAtom<'_>, base: &mut Value, config: &Value, walk: &Walk<'_>) -> bool {
        let has_items = |value: &Value| value.as_array().is_some_and(|items| !items.is_empty());
        match (has_items(base), has_items(config)) {
            // An empty list is not the same as null.
            (false, false) => return replace(base, config),
            (true, false) => return true,
            (false, true) => *base = Value::Array(Vec::new()),
            (true, true) => {}
        }
        let (Value::Array(base), Value::Array(config)) = (base, config) else { return false };
        let Some(order) = list::merged_order(list, base, config, walk, self.problems) else { return false };
        let errors = self.problems.len();
        let mut old = std::mem::take(base);
        base.reserve(order.len());
        for place in order {
            let mut item = place.old.map_or(Value::Null, |index| old[index].take());
            let element = list.element();
            if place.new.is_none_or(|new| self.value(element, &mut item, &config[new], &walk.index(new))) {
                base.push(item);
            }
            // An element that does not match the schema is left out without an error.
            self.problems.truncate(errors);
        }
        !base.is_empty()
    }
}

/// Replaces a different value.
fn replace(base: &mut Value, config: &Value) -> bool {
    if base != config {
        *base = config.clone();
    }
    true
}
