//! Checks that a value has the structure of the schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::atom::{Form, ListAtom, MapAtom, TypeRef};
use super::error::TypedErrors;
use super::go_value::GoValue;
use super::list_key::ListKey;
use super::problem::{Problems, Walk, scalar_problem, unexpected};
use crate::graph::NodeRef;

/// The rule for several elements with the same key in sets and associative lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duplicates {
    /// Duplicates are allowed: for objects that are stored, created or updated.
    Allow,
    /// Duplicates are an error: for applied configurations.
    Forbid,
}

/// Checks that a value has the structure of the schema, with the messages of structured-merge-diff.
///
/// Only the rules that field ownership relies on are checked: the types of values, undeclared fields, and the
/// keys of list elements. Objects must pass this check before the other functions of this module are called.
///
/// ```
/// use serde_json::json;
/// use windlass_schema::fields::{Duplicates, validate_typed};
///
/// let schema = windlass_schema::Catalog::builtin().schema("", "v1", "ConfigMap").unwrap();
/// let object = json!({"data": {"a": 1}, "immutable": "yes"});
/// let errors = validate_typed(schema.root(), &object, Duplicates::Forbid).unwrap_err();
/// assert_eq!(errors.to_string(), "errors:
///   .data.a: expected string, got &value.valueUnstructured{Value:1}
///   .immutable: expected boolean, got &{yes}");
/// ```
///
/// # Errors
/// All mismatches; of very many only the first.
pub fn validate_typed(schema: NodeRef<'_>, value: &Value, duplicates: Duplicates) -> Result<(), TypedErrors> {
    let mut check = Check { problems: Problems::default(), duplicates };
    check.value(TypeRef::root(schema), value, &Walk::ROOT);
    check.problems.into_result(())
}

struct Check {
    problems: Problems,
    duplicates: Duplicates,
}

impl Check {
    fn value(&mut self, kind: TypeRef<'_>, value: &Value, walk: &Walk<'_>) {
        if self.problems.too_deep(walk) {
            return;
        }
        if let Some(found) = GoValue::read(value) {
            let form = kind.atom().narrow(value).form();
            return self.problems.add(walk, || found.problem(&form));
        }
        match (kind.atom().narrow(value).form(), value) {
            (Form::Scalar(scalar), _) => {
                if let Some(problem) = scalar_problem(scalar, value) {
                    self.problems.add(walk, || problem);
                }
            }
            (Form::List(_) | Form::Map(_), Value::Null) => {}
            (Form::List(list), Value::Array(items)) => self.list(list, items, walk),
            (Form::List(_), _) => self.problems.add(walk, || unexpected("list", value)),
            (Form::Map(map), Value::Object(members)) => self.map(map, members, walk),
            (Form::Map(_), _) => self.problems.add(walk, || unexpected("map", value)),
            (Form::None, _) => self.problems.add(walk, || "schema error: invalid atom: inlined".to_owned()),
        }
    }

    fn list(&mut self, list: ListAtom<'_>, items: &[Value], walk: &Walk<'_>) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            if !list.associative {
                self.value(list.element(), item, &walk.index(index));
                continue;
            }
            let key = match ListKey::of(list, item) {
                Ok(key) => key,
                // Without the element's key, an error in the element would have no path.
                Err(problem) => return self.problems.add(walk, || format!("element {index}: {problem}")),
            };
            if seen.contains(&key) {
                self.problems.add(walk, || format!("duplicate entries for key {}", key.to_element()));
            }
            self.value(list.element(), item, &walk.key(&key));
            if self.duplicates == Duplicates::Forbid {
                seen.insert(key);
            }
        }
    }

    fn map(&mut self, map: MapAtom<'_>, members: &Map<String, Value>, walk: &Walk<'_>) {
        // An undeclared field hides the errors beside it.
        let undeclared = |name: &&String| matches!(map.member(name).0, TypeRef::Undeclared);
        if let Some(name) = members.keys().find(undeclared) {
            return self.problems.add(&walk.field(name), || "field not declared in schema".to_owned());
        }
        for (name, value) in members {
            self.value(map.member(name).0, value, &walk.field(name));
        }
    }
}
