//! Adapts field sets to a schema.

use super::atom::{Form, TypeRef};
use super::field_set::{Entry, FieldSet};
use super::path_element::PathElement;
use crate::graph::NodeRef;

impl FieldSet {
    /// Returns the set that an owner has after a change of the schema: the owner of a part of a list or map
    /// that has become atomic owns the whole list or map.
    ///
    /// A list or map that is not atomic any more needs no change.
    pub fn reconciled(&self, schema: NodeRef<'_>) -> Self {
        match TypeRef::root(schema).atom().form() {
            Form::Map(map) if map.is_unspecified() || map.atomic => self.clone(),
            _ => reconcile(TypeRef::root(schema), self).unwrap_or_else(|| self.clone()),
        }
    }

    /// Returns the set together with the declared fields on the way to each path: `.spec` for
    /// `.spec.replicas`, but not `.data.a` of a map for `.data.a.b`.
    pub fn with_named_fields(&self, schema: NodeRef<'_>) -> Self {
        named(TypeRef::root(schema), self)
    }

    /// Returns whether every path of this set, every declared field above a path, and every list element and
    /// map entry above a path is in `other` after [`with_named_fields`](Self::with_named_fields).
    pub(super) fn is_covered_by(&self, other: &Self, schema: NodeRef<'_>) -> bool {
        covered(TypeRef::root(schema), self, other)
    }
}

/// Returns the type of the elements below a path element, and whether it is a declared field.
fn member_of<'g>(kind: TypeRef<'g>, element: &PathElement) -> (TypeRef<'g>, bool) {
    let atom = kind.atom();
    match (element, atom.map, atom.list) {
        (PathElement::Field(name), Some(map), _) => map.member(name),
        (PathElement::Key(_), _, Some(list)) => (list.element(), false),
        _ => (TypeRef::Undeclared, false),
    }
}

fn named(kind: TypeRef<'_>, set: &FieldSet) -> FieldSet {
    let entries = set.entries().iter().map(|entry| {
        if entry.below.is_empty() {
            return entry.clone();
        }
        let (kind, declared) = member_of(kind, &entry.element);
        let (element, below) = (entry.element.clone(), named(kind, &entry.below));
        Entry { element, member: entry.member || declared, below }
    });
    FieldSet::of_sorted(entries.collect())
}

fn covered(kind: TypeRef<'_>, set: &FieldSet, other: &FieldSet) -> bool {
    set.entries().iter().all(|entry| {
        let Some(found) = other.find(&entry.element) else { return false };
        if entry.below.is_empty() && found.member {
            return true;
        }
        let (kind, declared) = member_of(kind, &entry.element);
        let is_member = found.member || declared && !found.below.is_empty();
        is_member && covered(kind, &entry.below, &found.below)
    })
}

/// Returns the set below a value of a type, or `None` for an unchanged set.
fn reconcile(kind: TypeRef<'_>, set: &FieldSet) -> Option<FieldSet> {
    let form = kind.atom().form();
    let kind_of = |element: &PathElement| match (form, element) {
        (Form::Map(map), PathElement::Field(name)) => map.member(name).0,
        (Form::Map(map), _) => map.element(),
        (Form::List(list), _) => list.element(),
        (Form::Scalar(_) | Form::None, _) => TypeRef::Undeclared,
    };
    let mut changed: Option<Vec<Entry>> = None;
    for (index, entry) in set.entries().iter().enumerate() {
        let new = if entry.below.is_empty() { None } else { reconcile_entry(kind_of(&entry.element), entry) };
        if let Some(new) = new {
            changed.get_or_insert_with(|| set.entries().to_vec())[index] = new;
        }
    }
    changed.map(FieldSet::of_sorted)
}

/// Returns the entry of a value of a type, or `None` for an unchanged entry.
fn reconcile_entry(kind: TypeRef<'_>, entry: &Entry) -> Option<Entry> {
    let atomic = match kind.atom().form() {
        Form::Map(map) if map.is_unspecified() => return None,
        Form::Map(map) => map.atomic,
        Form::List(list) => !list.associative,
        Form::Scalar(_) | Form::None => return None,
    };
    let below = if atomic { FieldSet::default() } else { reconcile(kind, &entry.below)? };
    Some(Entry { element: entry.element.clone(), member: entry.member || atomic, below })
}
