//! Merges an applied configuration into an object.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::atom::{Form, ListAtom, MapAtom, TypeRef};
use super::error::TypedErrors;
use super::problem::{Problems, Walk, scalar_problem};
use crate::graph::NodeRef;

mod list;

/// Merges an applied configuration into an object. Both have passed [`validate_typed`](super::validate_typed), the
/// configuration without duplicates.
///
/// Nothing is removed. Of leaves, atomic lists and atomic maps, the value of the configuration wins. The elements of
/// an associative list are in the order of the configuration; elements that only the object has keep their positions
/// as far as possible.
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
    let mut merger = Merger { problems: &mut problems };
    let merged = merger.values(TypeRef::root(schema), Some(base), Some(config), &Walk::ROOT);
    problems.into_result(merged.unwrap_or_default())
}

struct Merger<'m> {
    problems: &'m mut Problems,
}

impl Merger<'_> {
    /// Merges the two values at a path, of which at least one is there. Returns `None` if nothing is left.
    fn values(
        &mut self,
        kind: TypeRef<'_>,
        base: Option<&Value>,
        config: Option<&Value>,
        walk: &Walk<'_>,
    ) -> Option<Value> {
        // What only the object has stays as it is.
        let Some(new) = config else { return base.cloned() };
        if self.problems.too_deep(walk) {
            return None;
        }
        match kind.atom().narrow(new).form() {
            Form::Scalar(scalar) => {
                let problem = |value| scalar_problem(scalar, value);
                if let (Some(old), Some(new)) = (base.and_then(problem), problem(new)) {
                    self.problems.add(walk, || format!("lhs: {old}"));
                    self.problems.add(walk, || format!("rhs: {new}"));
                    return None;
                }
                Some(new.clone())
            }
            Form::List(list) => {
                let [old, items] = [base, config].map(|value| value.and_then(Value::as_array));
                if !list.associative || old.is_none_or(Vec::is_empty) && items.is_none_or(Vec::is_empty) {
                    return Some(new.clone());
                }
                let [old, items] = [old, items].map(|items| items.map_or(&[][..], Vec::as_slice));
                self.list(list, old, items, walk)
            }
            Form::Map(map) => {
                let [old, members] = [base, config].map(|value| value.and_then(Value::as_object));
                if map.atomic || old.is_none_or(Map::is_empty) && members.is_none_or(Map::is_empty) {
                    return Some(new.clone());
                }
                self.map(map, old, members, walk)
            }
            Form::None => {
                self.problems.add(walk, || "schema error: invalid atom: inlined".to_owned());
                None
            }
        }
    }

    fn map(
        &mut self,
        map: MapAtom<'_>,
        base: Option<&Map<String, Value>>,
        config: Option<&Map<String, Value>>,
        walk: &Walk<'_>,
    ) -> Option<Value> {
        let mut out = Map::new();
        let mut base = base.into_iter().flatten().peekable();
        let mut config = config.into_iter().flatten().peekable();
        loop {
            let order = match (base.peek(), config.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((left, _)), Some((right, _))) => left.cmp(right),
            };
            let old = if order.is_le() { base.next() } else { None };
            let new = if order.is_ge() { config.next() } else { None };
            let Some((name, _)) = old.or(new) else { break };
            let [old, new] = [old, new].map(|member| member.map(|(_, value)| value));
            if let Some(value) = self.values(map.member(name).0, old, new, &walk.field(name)) {
                out.insert(name.clone(), value);
            }
        }
        (!out.is_empty()).then(|| out.into())
    }

    fn list(
        &mut self,
        list: ListAtom<'_>,
        base: &[Value],
        config: &[Value],
        walk: &Walk<'_>,
    ) -> Option<Value> {
        let pairs = list::pairs(list, base, config, walk, self.problems)?;
        let errors = self.problems.len();
        let mut out = Vec::with_capacity(pairs.len());
        for (old, new) in pairs {
            out.extend(self.values(list.element(), old, new, walk));
            // An element that does not match the schema is left out without an error.
            self.problems.truncate(errors);
        }
        (!out.is_empty()).then(|| out.into())
    }
}
