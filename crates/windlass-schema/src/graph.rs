//! The compiled schema: nodes joined by edges, some of them by name.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::{Number, Value};

use crate::pattern::Pattern;

/// How the elements of a list are told apart (`x-kubernetes-list-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// One value as a whole.
    Atomic,
    /// Scalars that occur once.
    Set,
    /// Objects told apart by their map keys.
    Map,
}

/// The JSON type that a schema asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Nothing is said about the type.
    Any,
    /// `object`
    Object,
    /// `array`
    Array,
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `boolean`
    Boolean,
}

/// What a strategic merge patch does with a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchMeta {
    /// Lists are merged element by element, not replaced.
    pub merge: bool,
    /// Fields that the patch's `$retainKeys` does not name are dropped.
    pub retain_keys: bool,
    /// The field that tells list elements apart; none: elements are scalars.
    pub merge_key: Option<Box<str>>,
}

/// What becomes of an empty value (`""`, `0`, `false`, `[]`, `{}`) when Go writes an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Empty {
    /// It stays: the field is a pointer in Go, or the object a custom one.
    Keep,
    /// It is left out, unless it is a struct.
    Omit,
    /// It is left out, whatever it is.
    OmitZero,
    /// It is written, also when it was not given.
    Always,
}

/// How a field stands on the wire of Kubernetes' protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProtoField {
    /// The field's number.
    pub(crate) number: u32,
    /// Whether it may occur many times; arrays only.
    pub(crate) repeated: bool,
    /// Numbers of the messages that the field lies in, of those that JSON does not have; zeros are none.
    pub(crate) through: [u32; 2],
    /// How its bytes become JSON.
    pub(crate) kind: ProtoKind,
}

/// The protobuf types that Kubernetes uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProtoKind {
    Bool,
    /// `int32` and `int64`
    Int,
    /// `uint32` and `uint64`
    Uint,
    Double,
    String,
    /// Base64 in JSON.
    Bytes,
    /// A message of the target's type.
    Message,
    /// Entries of key 1 and value 2.
    Map,
    /// Seconds and nanoseconds; text in JSON.
    Time,
    /// The same, told to the microsecond.
    MicroTime,
    /// A message around its text.
    Quantity,
    IntOrString,
    /// A message around JSON bytes.
    Raw,
    SchemaOrBool,
    SchemaOrArray,
    SchemaOrStrings,
    /// A message around a list.
    List,
}

/// What stands beside a property, an array's items or a map's values: facts of the place, not of the type.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) target: Target,
    /// The value that stands in when none is given.
    pub(crate) default: Option<Value>,
    /// The default that OpenAPI tells; for a field of Go's it is often just the type's empty value.
    pub(crate) published: Option<Value>,
    /// Whether a server was seen to fill in the default.
    pub(crate) observed: bool,
    pub(crate) empty: Empty,
    pub(crate) patch: Option<Box<PatchMeta>>,
    pub(crate) proto: Option<ProtoField>,
    pub(crate) go: Option<Box<GoNames>>,
}

/// Names that Go's decoder uses when it complains of a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GoNames {
    /// The type, where it has a name of its own (`v1.SecretType`).
    pub(crate) kind: Option<Box<str>>,
    /// The struct that the field lies in, where JSON does not show it (`VolumeSource`).
    pub(crate) inlined: Option<Box<str>>,
}

impl Edge {
    pub(crate) fn own(node: Node) -> Self {
        let target = Target::Own(Box::new(node));
        Self {
            target,
            default: None,
            published: None,
            observed: false,
            empty: Empty::Keep,
            patch: None,
            proto: None,
            go: None,
        }
    }
}

/// Where an edge leads.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A node of its own.
    Own(Box<Node>),
    /// A definition of the graph, by number: types may recur.
    Named(u32),
}

/// What an object may have besides its properties.
#[derive(Clone, Debug)]
pub(crate) enum Additional {
    /// Anything (`additionalProperties: true`).
    Any,
    /// Nothing (`additionalProperties: false`).
    Forbidden,
    /// Values of one schema.
    Schema(Edge),
}

/// One node: a type with its rules.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) kind: Type,
    pub(crate) nullable: bool,
    pub(crate) preserve_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) int_or_string: bool,
    pub(crate) map_atomic: bool,
    pub(crate) list_type: Option<ListType>,
    pub(crate) map_keys: Vec<Box<str>>,
    pub(crate) properties: BTreeMap<Box<str>, Edge>,
    pub(crate) additional: Option<Additional>,
    pub(crate) items: Option<Edge>,
    pub(crate) rules: Rules,
    /// `x-kubernetes-unions`, as it is published.
    pub(crate) unions: Option<Value>,
}

impl Node {
    pub(crate) fn new(kind: Type) -> Self {
        Self {
            kind,
            nullable: false,
            preserve_unknown: false,
            embedded: false,
            int_or_string: false,
            map_atomic: false,
            list_type: None,
            map_keys: Vec::new(),
            properties: BTreeMap::new(),
            additional: None,
            items: None,
            rules: Rules::default(),
            unions: None,
        }
    }
}

/// The value validations of a node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) format: Option<Box<str>>,
    pub(crate) required: Vec<Box<str>>,
    pub(crate) more: Option<Box<MoreRules>>,
}

/// The rarer value validations.
#[derive(Clone, Debug, Default)]
pub(crate) struct MoreRules {
    pub(crate) maximum: Option<Number>,
    pub(crate) exclusive_maximum: bool,
    pub(crate) minimum: Option<Number>,
    pub(crate) exclusive_minimum: bool,
    pub(crate) multiple_of: Option<Number>,
    pub(crate) max_length: Option<i64>,
    pub(crate) min_length: Option<i64>,
    pub(crate) pattern: Option<Pattern>,
    pub(crate) max_items: Option<i64>,
    pub(crate) min_items: Option<i64>,
    pub(crate) unique_items: bool,
    pub(crate) max_properties: Option<i64>,
    pub(crate) min_properties: Option<i64>,
    pub(crate) enumeration: Vec<Value>,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Node>,
}

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
        self.node.map_atomic
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
