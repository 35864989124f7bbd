//! Decodes the types of the blob into nodes. `xtask/src/codegen/types.rs` writes the types.

use std::sync::OnceLock;

use serde_json::Value;

use super::bits::{edge_bit, node_bit};
use super::reader::Reader;
use crate::graph::{
    Additional, Edge, EmptyPolicy, Enumeration, GoNames, ListType, Message, NamedNodes, Node, PatchMeta,
    ProtoField, ProtoKind, RareRules, Rules, Target, Type,
};

/// All definitions; each is decoded on first use.
pub(super) struct TypeTable {
    reader: Reader,
    rows: Vec<Row>,
}

struct Row {
    name: u32,
    position: usize,
    node: OnceLock<Node>,
    message: OnceLock<Message>,
}

impl TypeTable {
    pub(super) fn read(reader: &mut Reader) -> Option<Self> {
        let mut rows = Vec::new();
        for _ in 0..reader.number()? {
            let name = reader.number()?;
            let part = reader.part()?;
            rows.push(Row {
                name,
                position: part.position(),
                node: OnceLock::new(),
                message: OnceLock::new(),
            });
        }
        Some(Self { reader: reader.clone(), rows })
    }

    /// Returns the index of a definition; rows are sorted by name.
    pub(super) fn position(&self, name: &str) -> Option<u32> {
        let found =
            self.rows.binary_search_by(|row| self.reader.string(row.name).unwrap_or_default().cmp(name));
        found.ok().map(|index| index as u32)
    }
}

impl NamedNodes for TypeTable {
    fn node(&self, id: u32) -> &Node {
        let row = &self.rows[id as usize];
        row.node.get_or_init(|| {
            node(&mut self.reader.at(row.position)).expect("the blob is what `cargo xtask codegen` wrote")
        })
    }

    fn message(&self, id: u32) -> Option<&Message> {
        let row = self.rows.get(id as usize)?;
        Some(row.message.get_or_init(|| Message::compile(self.node(id), self)))
    }

    fn name(&self, id: u32) -> &str {
        self.rows.get(id as usize).and_then(|row| self.reader.string(row.name)).unwrap_or_default()
    }
}

fn node(reader: &mut Reader) -> Option<Node> {
    let bits = reader.number()?;
    let has = |bit: u32| bits & bit != 0;
    let mut out = Node::new(match bits & 7 {
        1 => Type::Object,
        2 => Type::Array,
        3 => Type::String,
        4 => Type::Integer,
        5 => Type::Number,
        6 => Type::Boolean,
        _ => Type::Any,
    });
    out.list_type = match bits >> node_bit::LIST_TYPE & 3 {
        1 => Some(ListType::Atomic),
        2 => Some(ListType::Set),
        3 => Some(ListType::Map),
        _ => None,
    };
    out.map_atomic = has(node_bit::MAP_ATOMIC);
    out.int_or_string = has(node_bit::INT_OR_STRING);
    out.preserve_unknown = has(node_bit::PRESERVE);
    let mut rules = Rules::default();
    if has(node_bit::FORMAT) {
        rules.format = Some(reader.text()?.into());
        rules.formatted = true;
    }
    if has(node_bit::REQUIRED) {
        rules.required = reader.texts()?;
    }
    if has(node_bit::ENUM) {
        let enumeration = Enumeration::new(reader.texts::<Value>()?);
        rules.more = Some(Box::new(RareRules { enumeration, ..RareRules::default() }));
    }
    out.rules = rules;
    if has(node_bit::MAP_KEYS) {
        out.map_keys = reader.texts()?;
    }
    if has(node_bit::UNIONS) {
        out.unions = Some(json(reader)?);
    }
    if has(node_bit::PROPERTIES) {
        for _ in 0..reader.number()? {
            let name = reader.text()?.into();
            out.properties.insert(name, edge(reader)?);
        }
    }
    if has(node_bit::ADDITIONAL) {
        out.additional = Some(Additional::Schema(edge(reader)?));
    }
    if has(node_bit::ITEMS) {
        out.items = Some(edge(reader)?);
    }
    Some(out)
}

fn json(reader: &mut Reader) -> Option<Value> {
    serde_json::from_str(reader.text()?).ok()
}

fn edge(reader: &mut Reader) -> Option<Edge> {
    let bits = reader.number()?;
    let has = |bit: u32| bits & bit != 0;
    let empty = match bits & 3 {
        1 => EmptyPolicy::Omit,
        2 => EmptyPolicy::OmitZero,
        3 => EmptyPolicy::Always,
        _ => EmptyPolicy::Keep,
    };
    let published = if has(edge_bit::DEFAULT) { Some(json(reader)?) } else { None };
    let default = if has(edge_bit::GIVEN_DEFAULT) { Some(json(reader)?) } else { published.clone() };
    let mut patch = PatchMeta {
        merge: has(edge_bit::MERGE),
        retain_keys: has(edge_bit::RETAIN_KEYS),
        replace: has(edge_bit::REPLACE),
        merge_key: None,
    };
    if has(edge_bit::MERGE_KEY) {
        patch.merge_key = Some(reader.text()?.into());
    }
    let proto = if has(edge_bit::PROTO) { Some(proto(reader)?) } else { None };
    let mut name = |bit: u32| -> Option<Option<Box<str>>> {
        if has(bit) { reader.text().map(|name| Some(name.into())) } else { Some(None) }
    };
    let go = GoNames { kind: name(edge_bit::GO_TYPE)?, inlined: name(edge_bit::GO_INLINED)? };
    let go = (go != GoNames::default()).then(|| Box::new(go));
    let target = if has(edge_bit::NAMED) {
        Target::Named(reader.number()?)
    } else {
        Target::Inline(Box::new(node(reader)?))
    };
    let patch = (patch != PatchMeta::default()).then(|| Box::new(patch));
    let observed = has(edge_bit::GIVEN_DEFAULT);
    let granular = has(edge_bit::GRANULAR);
    Some(Edge { target, default, published, observed, empty, granular, atomic: false, patch, proto, go })
}

fn proto(reader: &mut Reader) -> Option<ProtoField> {
    let number = reader.number()?;
    let kind = reader.number()?;
    let mut through = [0; 2];
    for slot in through.iter_mut().take((kind & 3) as usize) {
        *slot = reader.number()?;
    }
    Some(ProtoField { number: number >> 1, repeated: number & 1 == 1, through, kind: proto_kind(kind >> 2)? })
}

fn proto_kind(number: u32) -> Option<ProtoKind> {
    Some(match number {
        0 => ProtoKind::Bool,
        1 => ProtoKind::Int,
        2 => ProtoKind::Uint,
        3 => ProtoKind::Double,
        4 => ProtoKind::String,
        5 => ProtoKind::Bytes,
        6 => ProtoKind::Message,
        7 => ProtoKind::Map,
        8 => ProtoKind::Time,
        9 => ProtoKind::MicroTime,
        10 => ProtoKind::Quantity,
        11 => ProtoKind::IntOrString,
        12 => ProtoKind::Raw,
        13 => ProtoKind::SchemaOrBool,
        14 => ProtoKind::SchemaOrArray,
        15 => ProtoKind::SchemaOrStrings,
        16 => ProtoKind::List,
        _ => return None,
    })
}
