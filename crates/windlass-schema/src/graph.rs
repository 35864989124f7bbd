//! The compiled schema: nodes joined by edges, some of them by name.

mod node;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use node::{Additional, Edge, GoNames, MoreRules, Node, ProtoField, ProtoKind, Rules, Target};
pub use node::{Empty, ListType, PatchMeta, Type};

/// Finds the definitions that edges name.
pub(crate) trait Definitions: Send + Sync {
    fn node(&self, id: u32) -> &Node;
    fn name(&self, id: u32) -> &str;
}

/// The graph of a custom resource has no named definitions.
struct NoDefinitions(Node);

impl Definitions for NoDefinitions {
    fn node(&self, _: u32) -> &Node {
        &self.0
    }

    fn name(&self, _: u32) -> &'static str {
        ""
    }
}

/// The compiled schema of one kind. Cloning is cheap.
#[derive(Clone)]
pub struct Schema {
    definitions: Arc<dyn Definitions>,
    root: u32,
}

impl Schema {
    pub(crate) fn single(node: Node) -> Self {
        Self { definitions: Arc::new(NoDefinitions(node)), root: 0 }
    }

    pub(crate) fn named(definitions: Arc<dyn Definitions>, root: u32) -> Self {
        Self { definitions, root }
    }

    /// The node that the whole object is held against.
    pub fn root(&self) -> NodeRef<'_> {
        NodeRef {
            definitions: &*self.definitions,
            node: self.definitions.node(self.root),
            edge: None,
            name: Some(self.root),
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.root)
    }
}

/// A node of a [`Schema`], seen from the place that led to it. Copying is free.
#[derive(Clone, Copy)]
pub struct NodeRef<'g> {
    pub(crate) definitions: &'g dyn Definitions,
    pub(crate) node: &'g Node,
    pub(crate) edge: Option<&'g Edge>,
    pub(crate) name: Option<u32>,
}

impl<'g> NodeRef<'g> {
    pub(crate) fn follow(self, edge: &'g Edge) -> Self {
        let (node, name) = match &edge.target {
            Target::Own(node) => (&**node, None),
            Target::Named(id) => (self.definitions.node(*id), Some(*id)),
        };
        Self { definitions: self.definitions, node, edge: Some(edge), name }
    }

    /// A node of the same graph that no edge leads to (`allOf` and its like).
    pub(crate) fn nested(self, node: &'g Node) -> Self {
        Self { definitions: self.definitions, node, edge: None, name: None }
    }

    /// The JSON type.
    pub fn kind(self) -> Type {
        self.node.kind
    }

    /// Name of the definition, where the node has one (`io.k8s.api.core.v1.PodSpec`).
    pub fn definition(self) -> Option<&'g str> {
        self.name.map(|id| self.definitions.name(id)).filter(|name| !name.is_empty())
    }

    /// The schema of a property that is listed by name.
    pub fn property(self, name: &str) -> Option<Self> {
        self.node.properties.get(name).map(|edge| self.follow(edge))
    }

    /// The listed properties, by name in order.
    pub fn properties(self) -> impl Iterator<Item = (&'g str, Self)> {
        self.node.properties.iter().map(move |(name, edge)| (&**name, self.follow(edge)))
    }

    /// The schema of values that are not listed by name, where there is one.
    pub fn additional(self) -> Option<Self> {
        match &self.node.additional {
            Some(Additional::Schema(edge)) => Some(self.follow(edge)),
            _ => None,
        }
    }

    /// The schema of a member: its own, or that of all that are not listed.
    pub fn member(self, name: &str) -> Option<Self> {
        self.property(name).or_else(|| self.additional())
    }

    /// The schema of an array's elements.
    pub fn items(self) -> Option<Self> {
        self.node.items.as_ref().map(|edge| self.follow(edge))
    }

    /// Whether members that the schema does not name are kept.
    pub fn preserves_unknown(self) -> bool {
        self.node.preserve_unknown
    }

    /// Whether the value is an object with `apiVersion`, `kind` and `metadata`.
    pub fn is_embedded_resource(self) -> bool {
        self.node.embedded
    }

    /// Whether both integers and strings are allowed.
    pub fn is_int_or_string(self) -> bool {
        self.node.int_or_string
    }

    /// Whether `null` is a value of its own here.
    pub fn is_nullable(self) -> bool {
        self.node.nullable
    }

    /// The value that stands in when none is given.
    pub fn default(self) -> Option<&'g Value> {
        self.edge.and_then(|edge| edge.default.as_ref())
    }

    /// How list elements are told apart.
    pub fn list_type(self) -> Option<ListType> {
        self.node.list_type
    }

    /// The fields that tell the elements of a `Map` list apart.
    pub fn map_keys(self) -> impl Iterator<Item = &'g str> {
        self.node.map_keys.iter().map(|key| &**key)
    }

    /// Whether an object is one value as a whole (`x-kubernetes-map-type: atomic`).
    pub fn is_atomic_map(self) -> bool {
        self.node.map_atomic && !self.edge.is_some_and(|edge| edge.granular)
    }

    /// The format, as `int32` or `date-time`.
    pub fn format(self) -> Option<&'g str> {
        self.node.rules.format.as_deref()
    }

    /// What a strategic merge patch does here.
    pub fn patch_meta(self) -> Option<&'g PatchMeta> {
        self.edge.and_then(|edge| edge.patch.as_deref())
    }

    /// The names that must be there.
    pub fn required(self) -> impl Iterator<Item = &'g str> {
        self.node.rules.required.iter().map(|name| &**name)
    }
}

impl fmt::Debug for NodeRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeRef").field("kind", &self.node.kind).field("name", &self.definition()).finish()
    }
}
