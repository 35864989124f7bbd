//! Nodes and edges of a schema.

use std::collections::BTreeMap;

use serde_json::{Number, Value};
use windlass_text::Pattern;

use super::Enumeration;

/// How the elements of a list are identified (`x-kubernetes-list-type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// The list is a single value and is replaced as a whole.
    Atomic,
    /// A set of scalars.
    Set,
    /// Objects with map keys as identity.
    Map,
}

/// The JSON type that a schema requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// No constraint.
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

/// How a strategic merge patch treats a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchMeta {
    /// True if lists are merged element by element; false if lists are replaced.
    pub merge: bool,
    /// True if fields that `$retainKeys` of the patch does not name are dropped.
    pub retain_keys: bool,
    /// True if objects are replaced; false if objects are merged.
    pub replace: bool,
    /// The field that identifies a list element; `None` if the elements are scalars.
    pub merge_key: Option<Box<str>>,
}

/// How Go's encoder treats an empty value (`""`, `0`, `false`, `[]`, `{}`) of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmptyPolicy {
    /// Kept: the field is a pointer in Go, or belongs to a custom resource.
    Keep,
    /// Omitted, except for a struct (`omitempty`).
    Omit,
    /// Omitted, structs too (`omitzero`).
    OmitZero,
    /// Always written, even if the field was absent.
    Always,
}

/// The encoding of a field in Kubernetes' protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProtoField {
    /// The field number.
    pub(crate) number: u32,
    /// True if the field is repeated; arrays only.
    pub(crate) repeated: bool,
    /// The numbers of the fields that lead to the message of this field, where JSON inlines it; unused entries are 0.
    pub(crate) through: [u32; 2],
    /// The type on the wire.
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
    /// A message of the type of the target.
    Message,
    /// Repeated entries with the key in field 1 and the value in field 2.
    Map,
    /// A message with seconds and nanoseconds; a string in JSON.
    Time,
    /// Like [`Time`](Self::Time), with microseconds in JSON.
    MicroTime,
    /// A message that wraps a string.
    Quantity,
    IntOrString,
    /// A message that wraps JSON.
    Raw,
    SchemaOrBool,
    SchemaOrArray,
    SchemaOrStrings,
    /// A message that wraps a list.
    List,
}

/// The reference from a node to the type of a property, of array items or of map values, with the attributes
/// of the field.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) target: Target,
    /// The value of an absent field.
    pub(crate) default: Option<Value>,
    /// The default in the published OpenAPI document; often just the zero value of the Go type.
    pub(crate) published: Option<Value>,
    /// True if a real server was seen to apply the default.
    pub(crate) observed: bool,
    pub(crate) empty: EmptyPolicy,
    /// True if an object is merged field by field although its type is atomic.
    pub(crate) granular: bool,
    /// True if an object is replaced as a whole although its type is not atomic.
    pub(crate) atomic: bool,
    pub(crate) patch: Option<Box<PatchMeta>>,
    pub(crate) proto: Option<ProtoField>,
    pub(crate) go: Option<Box<GoNames>>,
}

/// Names that Go's JSON decoder prints in errors about a field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct GoNames {
    /// The type, for a named type (`v1.SecretType`).
    pub(crate) kind: Option<Box<str>>,
    /// The embedded struct that contains the field, if JSON inlines it (`VolumeSource`).
    pub(crate) inlined: Option<Box<str>>,
}

impl Edge {
    pub(crate) fn new(target: Target) -> Self {
        Self {
            target,
            default: None,
            published: None,
            observed: false,
            empty: EmptyPolicy::Keep,
            granular: false,
            atomic: false,
            patch: None,
            proto: None,
            go: None,
        }
    }
}

/// The node that an edge leads to.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A node that only this edge refers to.
    Inline(Box<Node>),
    /// A definition, by its index. Types may be recursive.
    Named(u32),
}

/// The schema of members that are not in `properties`.
#[derive(Clone, Debug)]
pub(crate) enum Additional {
    /// Anything (`additionalProperties: true`).
    Any,
    /// Nothing (`additionalProperties: false`).
    Forbidden,
    /// Values that match this schema.
    Schema(Edge),
}

/// A type and the constraints of the type.
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
    /// `x-kubernetes-unions`, unchanged.
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

/// The value validations of a node; rare validations are boxed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// The format, if the server checks it.
    pub(crate) format: Option<Box<str>>,
    /// True if the schema has a format, checked or not.
    pub(crate) formatted: bool,
    pub(crate) required: Vec<Box<str>>,
    pub(crate) more: Option<Box<RareRules>>,
}

/// Value validations that few nodes have.
#[derive(Clone, Debug, Default)]
pub(crate) struct RareRules {
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
    pub(crate) enumeration: Enumeration,
    pub(crate) all_of: Vec<Node>,
    pub(crate) any_of: Vec<Node>,
    pub(crate) one_of: Vec<Node>,
    pub(crate) not: Option<Node>,
}
