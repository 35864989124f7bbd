//! The compiled schema: a graph of nodes and edges.

mod enumeration;
pub(crate) mod message;
mod node;

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

pub(crate) use enumeration::Enumeration;
pub(crate) use message::Message;
pub(crate) use node::{Additional, Edge, GoNames, Node, ProtoField, ProtoKind, RareRules, Rules, Target};
pub use node::{EmptyPolicy, ListType, PatchMeta, Type};

/// The named definitions of a graph.
pub(crate) trait NamedNodes: Send + Sync {
    fn node(&self, id: u32) -> &Node;
    fn name(&self, id: u32) -> &str;

    /// Returns the protobuf message of a definition. `None` if the definitions are not of built-in kinds.
    fn message(&self, _: u32) -> Option<&Message> {
        None
    }
}

/// The graph of a custom resource: a root without named definitions.
struct NoNamedNodes(Node);

impl NamedNodes for NoNamedNodes {
    fn node(&self, _: u32) -> &Node {
        &self.0
    }

    fn name(&self, _: u32) -> &'static str {
        ""
    }
}

/// The compiled schema of a kind. A clone shares the graph.
#[derive(Clone)]
pub struct Schema {
    definitions: Arc<dyn NamedNodes>,
    root: u32,
}

impl Schema {
    pub(crate) fn single(node: Node) -> Self {
        Self { definitions: Arc::new(NoNamedNodes(node)), root: 0 }
    }

    pub(crate) fn named(definitions: Arc<dyn NamedNodes>, root: u32) -> Self {
        Self { definitions, root }
    }

    /// Returns the node of the whole object.
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

/// A node of a [`Schema`] together with the edge that leads to it.
#[derive(Clone, Copy)]
pub struct NodeRef<'g> {
    pub(crate) definitions: &'g dyn NamedNodes,
    pub(crate) node: &'g Node,
    pub(crate) edge: Option<&'g Edge>,
    pub(crate) name: Option<u32>,
}

impl<'g> NodeRef<'g> {
    pub(crate) fn follow(self, edge: &'g Edge) -> Self {
        let (node, name) = match &edge.target {
            Target::Inline(node) => (&**node, None),
            Target::Named(id) => (self.definitions.node(*id), Some(*id)),
        };
        Self { definitions: self.definitions, node, edge: Some(edge), name }
    }

    /// Returns a node of the same graph that has no edge, such as a branch of `allOf`.
    pub(crate) fn nested(self, node: &'g Node) -> Self {
        Self { definitions: self.definitions, node, edge: None, name: None }
    }

    /// Returns the JSON type.
    pub fn kind(self) -> Type {
        self.node.kind
    }

    /// Returns the name of the definition (`io.k8s.api.core.v1.PodSpec`), if the node has one.
    pub fn definition(self) -> Option<&'g str> {
        self.name.map(|id| self.definitions.name(id)).filter(|name| !name.is_empty())
    }

    /// Returns the schema of a property in `properties`.
    pub fn property(self, name: &str) -> Option<Self> {
        self.node.properties.get(name).map(|edge| self.follow(edge))
    }

    /// Returns the schemas of `properties`, sorted by name.
    pub fn properties(self) -> impl Iterator<Item = (&'g str, Self)> {
        self.node.properties.iter().map(move |(name, edge)| (&**name, self.follow(edge)))
    }

    /// Returns the schema of `additionalProperties`, if it has one.
    pub fn additional(self) -> Option<Self> {
        match &self.node.additional {
            Some(Additional::Schema(edge)) => Some(self.follow(edge)),
            _ => None,
        }
    }

    /// Returns the schema of a member: from `properties`, or else from `additionalProperties`.
    pub fn member(self, name: &str) -> Option<Self> {
        self.property(name).or_else(|| self.additional())
    }

    /// Returns the schema of the elements of an array.
    pub fn items(self) -> Option<Self> {
        self.node.items.as_ref().map(|edge| self.follow(edge))
    }

    /// Returns whether unknown members are kept (`x-kubernetes-preserve-unknown-fields`).
    pub fn preserves_unknown(self) -> bool {
        self.node.preserve_unknown
    }

    /// Returns whether the value is an object with `apiVersion`, `kind` and `metadata`
    /// (`x-kubernetes-embedded-resource`).
    pub fn is_embedded_resource(self) -> bool {
        self.node.embedded
    }

    /// Returns whether both integers and strings are allowed (`x-kubernetes-int-or-string`).
    pub fn is_int_or_string(self) -> bool {
        self.node.int_or_string
    }

    /// Returns whether `null` is a valid value.
    pub fn is_nullable(self) -> bool {
        self.node.nullable
    }

    /// Returns the default.
    pub fn default(self) -> Option<&'g Value> {
        self.edge.and_then(|edge| edge.default.as_ref())
    }

    /// Returns how the elements of a list are identified.
    pub fn list_type(self) -> Option<ListType> {
        self.node.list_type
    }

    /// Returns the fields that identify an element of a list of type [`Map`](ListType::Map).
    pub fn map_keys(self) -> impl Iterator<Item = &'g str> {
        self.node.map_keys.iter().map(|key| &**key)
    }

    /// Returns whether an object is replaced as a whole (`x-kubernetes-map-type: atomic`).
    pub fn is_atomic_map(self) -> bool {
        match self.edge {
            Some(edge) => edge.atomic || self.node.map_atomic && !edge.granular,
            None => self.node.map_atomic,
        }
    }

    /// Returns the format, such as `int32` or `date-time`.
    pub fn format(self) -> Option<&'g str> {
        self.node.rules.format.as_deref()
    }

    /// Returns how a strategic merge patch treats the field.
    pub fn patch_meta(self) -> Option<&'g PatchMeta> {
        self.edge.and_then(|edge| edge.patch.as_deref())
    }

    /// Returns the names of the required members.
    pub fn required(self) -> impl Iterator<Item = &'g str> {
        self.node.rules.required.iter().map(|name| &**name)
    }
}

impl fmt::Debug for NodeRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeRef").field("kind", &self.node.kind).field("name", &self.definition()).finish()
    }
}
