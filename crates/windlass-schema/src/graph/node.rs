//! What a schema is made of: nodes, and the edges that join them.

use std::collections::BTreeMap;

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
    /// Objects are replaced, not merged.
    pub replace: bool,
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
    /// Whether an object is merged here field by field, also where its type is one value as a whole.
    pub(crate) granular: bool,
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
            granular: false,
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
