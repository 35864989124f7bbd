//! The types of structured-merge-diff, derived from a schema.
//!
//! structured-merge-diff sees less of a schema than validation does: a value is a scalar, a list or a map. Lists are
//! atomic or associative, maps are atomic or granular.

use std::sync::LazyLock;

use serde_json::Value;

use crate::catalog::object_meta;
use crate::graph::{Additional, ListType, NodeRef, Schema, Type};

static OBJECT_META: LazyLock<Schema> = LazyLock::new(object_meta);
static NAME: LazyLock<Schema> = LazyLock::new(|| Schema::compile(&serde_json::json!({"type": "string"})));

/// The type of a value.
#[derive(Clone, Copy)]
pub(super) enum TypeRef<'g> {
    /// The type of a schema node. `open` is true if an enclosing object preserves unknown fields.
    Node { node: NodeRef<'g>, open: bool },
    /// Anything: maps are granular, lists are atomic.
    Deduced,
    /// Anything, as a single value.
    Untyped,
    /// The type of a field that the schema does not declare.
    Undeclared,
}

/// The scalars that a type allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Untyped,
    Numeric,
    String,
    Boolean,
}

/// The possible forms of a value. If several are set, the value decides.
#[derive(Clone, Copy)]
pub(super) struct Atom<'g> {
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<ListAtom<'g>>,
    pub(super) map: Option<MapAtom<'g>>,
}

/// The type of a list.
#[derive(Clone, Copy)]
pub(super) struct ListAtom<'g> {
    node: Option<NodeRef<'g>>,
    open: bool,
    pub(super) associative: bool,
}

/// The type of an object or a map.
#[derive(Clone, Copy)]
pub(super) struct MapAtom<'g> {
    source: Source<'g>,
    pub(super) atomic: bool,
}

#[derive(Clone, Copy)]
enum Source<'g> {
    Node {
        node: NodeRef<'g>,
        open: bool,
    },
    /// All members have this type.
    Any(Anything),
}

#[derive(Clone, Copy)]
enum Anything {
    Deduced,
    Untyped,
}

impl<'g> TypeRef<'g> {
    pub(super) fn root(node: NodeRef<'g>) -> Self {
        Self::Node { node, open: false }
    }

    /// Returns the type of a node that another node refers to.
    fn follow(node: NodeRef<'g>, open: bool) -> Self {
        // A definition does not depend on the referring node.
        Self::Node { node, open: open && node.name.is_none() }
    }

    pub(super) fn atom(self) -> Atom<'g> {
        match self {
            Self::Node { node, open } => node_atom(node, open || node.node.preserve_unknown),
            Self::Deduced => Atom::anything(Anything::Deduced),
            Self::Untyped => Atom::anything(Anything::Untyped),
            Self::Undeclared => Atom { scalar: None, list: None, map: None },
        }
    }
}

fn node_atom(node: NodeRef<'_>, open: bool) -> Atom<'_> {
    let none = Atom { scalar: None, list: None, map: None };
    let scalar = |scalar| Atom { scalar: Some(scalar), ..none };
    let list = || ListAtom { node: Some(node), open, associative: is_associative(node) };
    let map = || MapAtom { source: Source::Node { node, open }, atomic: node.is_atomic_map() };
    let format = node.node.rules.format.as_deref();
    match node.kind() {
        Type::Any if matches!(format, Some("quantity" | "date-time" | "micro-time")) => {
            scalar(Scalar::Untyped)
        }
        Type::Any | Type::Object if format == Some("raw") => Atom {
            map: Some(MapAtom {
                source: Source::Any(Anything::Untyped),
                atomic: !node.edge.is_some_and(|edge| edge.granular),
            }),
            ..Atom::anything(Anything::Untyped)
        },
        Type::Any => Atom { scalar: Some(Scalar::Untyped), list: Some(list()), map: Some(map()) },
        Type::Object => Atom { map: Some(map()), ..none },
        Type::Array => Atom { list: Some(list()), ..none },
        Type::String if node.node.rules.formatted && format != Some("byte") => scalar(Scalar::Untyped),
        Type::String => scalar(Scalar::String),
        Type::Integer | Type::Number => scalar(Scalar::Numeric),
        Type::Boolean => scalar(Scalar::Boolean),
    }
}

/// Returns whether the elements of a list have keys or are a set. Without a list type, the patch strategy
/// decides.
fn is_associative(node: NodeRef<'_>) -> bool {
    match node.list_type() {
        Some(list_type) => list_type != ListType::Atomic,
        None => node.patch_meta().is_some_and(|meta| meta.merge),
    }
}

impl<'g> Atom<'g> {
    fn anything(anything: Anything) -> Self {
        let atomic = matches!(anything, Anything::Untyped);
        Self {
            scalar: Some(Scalar::Untyped),
            list: Some(ListAtom { node: None, open: false, associative: false }),
            map: Some(MapAtom { source: Source::Any(anything), atomic }),
        }
    }

    /// Returns the possible forms of a value. `null` and values of other forms narrow no type.
    pub(super) fn narrow(self, value: &Value) -> Self {
        let none = Self { scalar: None, list: None, map: None };
        match value {
            Value::Number(_) | Value::String(_) | Value::Bool(_) if self.scalar.is_some() => {
                Self { scalar: self.scalar, ..none }
            }
            Value::Array(_) if self.list.is_some() => Self { list: self.list, ..none },
            Value::Object(_) if self.map.is_some() => Self { map: self.map, ..none },
            _ => self,
        }
    }

    /// Returns whether two narrowed forms of one type are the same.
    pub(super) fn is_same(self, other: Self) -> bool {
        self.scalar.is_some() == other.scalar.is_some()
            && self.list.is_some() == other.list.is_some()
            && self.map.is_some() == other.map.is_some()
    }

    /// Returns the form that decides: a map before a scalar before a list.
    pub(super) fn form(self) -> Form<'g> {
        match (self.map, self.scalar, self.list) {
            (Some(map), ..) => Form::Map(map),
            (None, Some(scalar), _) => Form::Scalar(scalar),
            (None, None, Some(list)) => Form::List(list),
            (None, None, None) => Form::None,
        }
    }
}

/// The form of a value.
#[derive(Clone, Copy)]
pub(super) enum Form<'g> {
    Map(MapAtom<'g>),
    Scalar(Scalar),
    List(ListAtom<'g>),
    /// The schema does not declare the value.
    None,
}

impl<'g> ListAtom<'g> {
    /// Returns the type of the elements.
    pub(super) fn element(self) -> TypeRef<'g> {
        let items = self.node.and_then(NodeRef::items);
        items.map_or(TypeRef::Untyped, |items| TypeRef::follow(items, self.open))
    }

    /// Returns the names of the key fields; a list without key fields is a set.
    pub(super) fn keys(self) -> impl Iterator<Item = &'g str> {
        let node = self.node;
        let merge_key = node.filter(|node| node.list_type().is_none()).and_then(|node| {
            let meta = node.patch_meta()?;
            meta.merge_key.as_deref()
        });
        let listed = node.filter(|node| node.list_type() == Some(ListType::Map));
        listed.into_iter().flat_map(NodeRef::map_keys).chain(merge_key)
    }
}

impl<'g> MapAtom<'g> {
    /// Returns the type of a declared field.
    pub(super) fn field(self, name: &str) -> Option<TypeRef<'g>> {
        let Source::Node { node, open } = self.source else { return None };
        if node.is_embedded_resource() {
            match name {
                "metadata" => return Some(TypeRef::root(OBJECT_META.root())),
                "apiVersion" | "kind" => return Some(TypeRef::root(NAME.root())),
                _ => {}
            }
        }
        node.property(name).map(|property| TypeRef::follow(property, open))
    }

    /// Returns the type of members that are no declared fields.
    pub(super) fn element(self) -> TypeRef<'g> {
        let (node, open) = match self.source {
            Source::Node { node, open } => (node, open),
            Source::Any(Anything::Deduced) => return TypeRef::Deduced,
            Source::Any(Anything::Untyped) => return TypeRef::Untyped,
        };
        match &node.node.additional {
            Some(Additional::Schema(edge)) => TypeRef::follow(node.follow(edge), open),
            Some(Additional::Any) => TypeRef::Deduced,
            Some(Additional::Forbidden) => TypeRef::Undeclared,
            None if open || !self.has_fields() => TypeRef::Deduced,
            None => TypeRef::Undeclared,
        }
    }

    fn has_fields(self) -> bool {
        match self.source {
            Source::Node { node, .. } => node.is_embedded_resource() || !node.node.properties.is_empty(),
            Source::Any(_) => false,
        }
    }

    /// Returns the type of a member, and whether it is a declared field.
    pub(super) fn member(self, name: &str) -> (TypeRef<'g>, bool) {
        match self.field(name) {
            Some(field) => (field, true),
            None => (self.element(), false),
        }
    }

    /// Returns whether the schema has no rule about the members.
    pub(super) fn is_unspecified(self) -> bool {
        if self.has_fields() {
            return false;
        }
        match self.element() {
            TypeRef::Deduced => true,
            TypeRef::Node { node, .. } => {
                node.name.is_none() && self.element().atom().scalar == Some(Scalar::Untyped)
            }
            TypeRef::Untyped | TypeRef::Undeclared => false,
        }
    }

    /// Returns the default of a field.
    pub(super) fn default_of(self, name: &str) -> Option<&'g Value> {
        let Source::Node { node, .. } = self.source else { return None };
        let edge = node.node.properties.get(name)?;
        // Only the published default counts, not a default that was observed on the server.
        if edge.observed { edge.published.as_ref() } else { edge.default.as_ref() }
    }
}
