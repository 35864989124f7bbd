//! Compares objects field by field.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::atom::{Form, ListAtom, MapAtom, Scalar, TypeRef};
use super::error::TypedErrors;
use super::field_set::{Entry, FieldSet};
use super::filter::FieldFilter;
use super::list_key::Keyed;
use super::path_element::PathElement;
use super::problem::{Problems, Walk, scalar_problem};
use super::value;
use crate::graph::NodeRef;

/// The fields in which two objects differ. An atomic list or map is one field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The fields that only the new object has.
    pub added: FieldSet,
    /// The fields that have different values.
    pub modified: FieldSet,
    /// The fields that only the old object has.
    pub removed: FieldSet,
}

impl Comparison {
    /// Returns whether the objects are equal.
    pub fn is_same(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Returns the fields that a filter selects.
    #[must_use]
    pub fn filtered(self, filter: &FieldFilter) -> Self {
        Self {
            added: filter.apply(&self.added),
            modified: filter.apply(&self.modified),
            removed: filter.apply(&self.removed),
        }
    }
}

/// Compares two objects that have passed [`validate_typed`](super::validate_typed).
///
/// ```
/// use serde_json::json;
/// use windlass_schema::fields::compare;
///
/// let schema = windlass_schema::Catalog::builtin().schema("", "v1", "ConfigMap").unwrap();
/// let old = json!({"data": {"a": "1", "b": "1"}});
/// let new = json!({"data": {"a": "2", "c": "1"}});
/// let comparison = compare(schema.root(), &old, &new).unwrap();
/// assert_eq!(comparison.added.to_string(), ".data.c");
/// assert_eq!(comparison.modified.to_string(), ".data.a");
/// assert_eq!(comparison.removed.to_string(), ".data.b");
/// ```
///
/// # Errors
/// If a field is not declared in the schema, or a value has a wrong type in both objects.
pub fn compare(schema: NodeRef<'_>, old: &Value, new: &Value) -> Result<Comparison, TypedErrors> {
    let mut problems = Problems::default();
    let kind = TypeRef::root(schema);
    let difference = Comparer { problems: &mut problems }.values(kind, Some(old), Some(new), &Walk::ROOT);
    problems.into_result(Comparison {
        added: FieldSet::of_entries(difference.added.below),
        modified: FieldSet::of_entries(difference.modified.below),
        removed: FieldSet::of_entries(difference.removed.below),
    })
}

/// The part of a field set at and below a path.
#[derive(Default)]
struct Part {
    member: bool,
    /// In any order, and with duplicates if the old and the new value have different types.
    below: Vec<Entry>,
}

impl Part {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }

    fn push(&mut self, element: &PathElement, part: Self) {
        if !part.is_empty() {
            let below = FieldSet::of_entries(part.below);
            self.below.push(Entry { element: element.clone(), member: part.member, below });
        }
    }
}

/// The parts of a comparison at and below a path.
#[derive(Default)]
struct Difference {
    added: Part,
    modified: Part,
    removed: Part,
}

impl Difference {
    fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// Adds the difference at and below a path that is longer by an element.
    fn push(&mut self, element: &PathElement, below: Self) {
        self.added.push(element, below.added);
        self.modified.push(element, below.modified);
        self.removed.push(element, below.removed);
    }
}

struct Comparer<'c> {
    problems: &'c mut Problems,
}

/// The two values at a path; at least one value is present.
type Pair<'v> = (Option<&'v Value>, Option<&'v Value>);

impl Comparer<'_> {
    fn values(
        &mut self,
        kind: TypeRef<'_>,
        old: Option<&Value>,
        new: Option<&Value>,
        walk: &Walk<'_>,
    ) -> Difference {
        let mut out = Difference::default();
        out.added.member = old.is_none();
        out.removed.member = new.is_none();
        if self.problems.too_deep(walk) {
            return out;
        }
        let atom = kind.atom();
        let [before, after] = [old, new].map(|value| value.map(|value| atom.narrow(value)));
        match (before, after) {
            (Some(before), Some(after)) if !before.is_same(after) => {
                self.form(before.form(), (old, new), walk, &mut out);
                self.form(after.form(), (old, new), walk, &mut out);
            }
            (before, after) => {
                self.form(after.or(before).unwrap_or(atom).form(), (old, new), walk, &mut out);
            }
        }
        out
    }

    fn form(&mut self, form: Form<'_>, pair: Pair<'_>, walk: &Walk<'_>, out: &mut Difference) {
        match form {
            Form::Scalar(scalar) => self.scalar(scalar, pair, walk, out),
            Form::List(list) => {
                let [old, new] = [pair.0, pair.1].map(|value| value.and_then(Value::as_array));
                let empty = old.is_none_or(Vec::is_empty) && new.is_none_or(Vec::is_empty);
                if !list.associative || empty {
                    return leaf(pair, out);
                }
                let [old, new] = [old, new].map(|items| items.map_or(&[][..], Vec::as_slice));
                self.list(list, old, new, walk, out);
            }
            Form::Map(map) => {
                let [old, new] = [pair.0, pair.1].map(|value| value.and_then(Value::as_object));
                let empty = old.is_none_or(Map::is_empty) && new.is_none_or(Map::is_empty);
                if map.atomic || empty {
                    return leaf(pair, out);
                }
                self.map(map, old, new, walk, out);
            }
            Form::None => {
                self.problems.add(walk, || "schema error: invalid atom: inlined".to_owned());
            }
        }
    }

    fn scalar(&mut self, scalar: Scalar, pair: Pair<'_>, walk: &Walk<'_>, out: &mut Difference) {
        let [old, new] = [pair.0, pair.1].map(|value| value.and_then(|value| scalar_problem(scalar, value)));
        if let (Some(old), Some(new)) = (old, new) {
            self.problems.add(walk, || format!("lhs: {old}"));
            self.problems.add(walk, || format!("rhs: {new}"));
            return;
        }
        leaf(pair, out);
    }

    fn map(
        &mut self,
        map: MapAtom<'_>,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
        walk: &Walk<'_>,
        out: &mut Difference,
    ) {
        let mut old = old.into_iter().flatten().peekable();
        let mut new = new.into_iter().flatten().peekable();
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((left, _)), Some((right, _))) => left.cmp(right),
            };
            let before = if order.is_le() { old.next() } else { None };
            let after = if order.is_ge() { new.next() } else { None };
            let Some((name, _)) = before.or(after) else { break };
            let [before, after] = [before, after].map(|member| member.map(|(_, value)| value));
            if before.zip(after).is_some_and(|(before, after)| value::is_same_scalar(before, after)) {
                continue;
            }
            let difference = self.values(map.member(name).0, before, after, &walk.field(name));
            if !difference.is_empty() {
                out.push(&PathElement::field(name), difference);
            }
        }
    }

    fn list(
        &mut self,
        list: ListAtom<'_>,
        old: &[Value],
        new: &[Value],
        walk: &Walk<'_>,
        out: &mut Difference,
    ) {
        let [old, new] = [old, new].map(|items| {
            Keyed::new(list, items, |index, problem| {
                self.problems.add(walk, || format!("element {index}: {problem}"));
            })
        });
        let (mut before, mut after) = (old.groups().peekable(), new.groups().peekable());
        loop {
            let order = match (before.peek(), after.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(left), Some(right)) => old.key(left).cmp(new.key(right)),
            };
            let left = if order.is_le() { before.next() } else { None }.unwrap_or_default();
            let right = if order.is_ge() { after.next() } else { None }.unwrap_or_default();
            let key = if left.is_empty() { new.key(right) } else { old.key(left) };
            let element = list.element();
            let difference = if left.len() <= 1 && right.len() <= 1 {
                let old = left.first().map(|&index| old.items[index].1);
                let new = right.first().map(|&index| new.items[index].1);
                self.values(element, old, new, &walk.key(key))
            } else {
                let left: Vec<&Value> = left.iter().map(|&index| old.items[index].1).collect();
                let right: Vec<&Value> = right.iter().map(|&index| new.items[index].1).collect();
                self.duplicates(element, &left, &right, &walk.key(key))
            };
            if !difference.is_empty() {
                out.push(&key.to_element(), difference);
            }
        }
    }

    /// Compares the elements of two lists with a key that occurs several times in one list. The elements with
    /// the key are compared as a whole.
    fn duplicates(
        &mut self,
        kind: TypeRef<'_>,
        old: &[&Value],
        new: &[&Value],
        walk: &Walk<'_>,
    ) -> Difference {
        let mut out = match (old, new) {
            (_, [one]) => self.values(kind, None, Some(one), walk),
            ([one], _) => self.values(kind, Some(one), None, walk),
            _ => Difference::default(),
        };
        match (old, new) {
            ([_, _, ..], [_, _, ..]) => {
                let equal =
                    old.len() == new.len() && old.iter().zip(new).all(|(old, new)| value::equal(old, new));
                out.modified.member |= !equal;
            }
            ([_, _, ..], _) => out.removed.member = true,
            _ => out.added.member = true,
        }
        out
    }
}

/// Compares two values as a whole.
fn leaf(pair: Pair<'_>, out: &mut Difference) {
    if let (Some(old), Some(new)) = pair {
        out.modified.member |= !value::equal(old, new);
    }
}
