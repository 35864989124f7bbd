//! Writes definitions as nodes and edges.

use serde_json::{Map, Value, json};

use super::DataFiles;
use super::bits::{edge_bit, node_bit};
use super::pack::Packer;
use super::proto::{ProtoField, proto_fields};
use crate::Result;

/// Writes the number of definitions, then the name and the length-prefixed node of each definition.
pub(super) fn definitions(packer: &mut Packer, data: &DataFiles) -> Result {
    packer.number(data.types.len() as u32);
    for (name, schema) in &data.types {
        packer.text(name);
        let writer = Writer { data, definition: name };
        packer.sized(|packer| writer.definition(packer, schema))?;
    }
    Ok(())
}

struct Writer<'f> {
    data: &'f DataFiles,
    definition: &'f str,
}

impl Writer<'_> {
    fn definition(&self, packer: &mut Packer, schema: &Value) -> Result {
        let empty = Map::new();
        // `JSONSchemaPropsOrBool` and similar unions have the properties of the schema.
        let of_schema = self.definition.split_once("PropsOr").map(|(start, _)| format!("{start}Props"));
        let described = of_schema.as_ref().and_then(|name| self.data.types.get(name));
        let shape = described.unwrap_or(schema);
        let properties = shape["properties"].as_object().unwrap_or(&empty);
        let message = of_schema.as_deref().unwrap_or(self.definition);
        let proto_fields = proto_fields(&self.data.messages, message, properties)?;
        let mut edges = Vec::new();
        for (name, property) in properties {
            edges.push((name, property, proto_fields.get(name)));
        }
        self.node(packer, schema, &edges, None)
    }

    /// Writes a node. `inner` is the protobuf field of the node's items or map values.
    fn node(
        &self,
        packer: &mut Packer,
        schema: &Value,
        edges: &[(&String, &Value, Option<&ProtoField>)],
        inner: Option<&ProtoField>,
    ) -> Result {
        let text = |name: &str| schema[name].as_str().unwrap_or_default();
        let list = |name: &str| schema[name].as_array().cloned().unwrap_or_default();
        let special = special(self.definition, schema);
        let kind = match text("type") {
            _ if special.is_some() => 0,
            "object" => 1,
            "array" => 2,
            "string" => 3,
            "integer" => 4,
            "number" => 5,
            "boolean" => 6,
            _ => 0,
        };
        let list_type = match text("x-kubernetes-list-type") {
            "atomic" => 1,
            "set" => 2,
            "map" => 3,
            _ => 0,
        };
        let format = special.or_else(|| schema["format"].as_str()).unwrap_or_default();
        let bare_object = kind == 1 && edges.is_empty() && schema["additionalProperties"].is_null();
        let keeps_all = matches!(special, Some("json" | "raw" | "fields-v1" | "json-or"))
            || bare_object
                && text("x-kubernetes-group-version-kind").is_empty()
                && keeps_all(self.definition);
        let mut bits = kind | list_type << node_bit::LIST_TYPE;
        let mut set = |bit: u32, on: bool| bits |= if on { bit } else { 0 };
        set(node_bit::MAP_ATOMIC, text("x-kubernetes-map-type") == "atomic");
        set(node_bit::INT_OR_STRING, special == Some("int-or-string"));
        set(node_bit::PRESERVE, keeps_all);
        set(node_bit::FORMAT, !format.is_empty());
        set(node_bit::REQUIRED, !list("required").is_empty());
        set(node_bit::ENUM, !list("enum").is_empty());
        set(node_bit::PROPERTIES, !edges.is_empty());
        set(node_bit::ADDITIONAL, schema["additionalProperties"].is_object());
        set(node_bit::ITEMS, schema["items"].is_object());
        set(node_bit::MAP_KEYS, !list("x-kubernetes-list-map-keys").is_empty());
        set(node_bit::UNIONS, !schema["x-kubernetes-unions"].is_null());
        packer.number(bits);
        if !format.is_empty() {
            packer.text(format);
        }
        for name in ["required", "enum", "x-kubernetes-list-map-keys"] {
            let values = list(name);
            if !values.is_empty() {
                packer.number(values.len() as u32);
                for value in &values {
                    packer.text(value.as_str().ok_or_else(|| format!("{}: {value}", self.definition))?);
                }
            }
        }
        if !schema["x-kubernetes-unions"].is_null() {
            packer.text(&schema["x-kubernetes-unions"].to_string());
        }
        if !edges.is_empty() {
            packer.number(edges.len() as u32);
            for (name, property, proto) in edges {
                packer.text(name);
                self.edge(packer, property, Some(name), *proto)?;
            }
        }
        for name in ["additionalProperties", "items"] {
            if schema[name].is_object() {
                self.edge(packer, &schema[name], None, inner)?;
            }
        }
        Ok(())
    }

    fn edge(
        &self,
        packer: &mut Packer,
        schema: &Value,
        property: Option<&str>,
        proto: Option<&ProtoField>,
    ) -> Result {
        let owner = self.definition.split_once("PropsOr").map(|(start, _)| format!("{start}Props"));
        let owner = owner.as_deref().unwrap_or(self.definition);
        let lookup =
            |table: &Map<String, Value>| property.and_then(|name| table.get(owner)?.get(name).cloned());
        let default = schema.get("default").filter(|value| !value.is_null());
        let given = match property {
            Some(_) => lookup(&self.data.defaults),
            None => self.zero_element(schema).filter(|_| default.is_none()),
        };
        let strategy = schema["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
        let merge_key = schema["x-kubernetes-patch-merge-key"].as_str();
        let target = schema["$ref"].as_str();
        let mut bits = match lookup(&self.data.presence).as_ref().and_then(Value::as_str) {
            Some("omit") => 1,
            Some("zero") => 2,
            Some("always") => 3,
            _ => 0,
        };
        let mut set = |bit: u32, on: bool| bits |= if on { bit } else { 0 };
        set(edge_bit::NAMED, target.is_some());
        set(edge_bit::DEFAULT, default.is_some());
        set(edge_bit::MERGE, strategy.split(',').any(|part| part == "merge"));
        set(edge_bit::RETAIN_KEYS, strategy.split(',').any(|part| part == "retainKeys"));
        set(edge_bit::MERGE_KEY, merge_key.is_some());
        set(edge_bit::REPLACE, strategy.split(',').any(|part| part == "replace"));
        set(edge_bit::GRANULAR, schema["x-kubernetes-map-type"] == "granular");
        set(edge_bit::PROTO, proto.is_some());
        set(edge_bit::GIVEN_DEFAULT, given.is_some());
        let names = lookup(&self.data.go_names).unwrap_or_default();
        let name = |index: usize| names[index].as_str().filter(|name| !name.is_empty());
        set(edge_bit::GO_TYPE, name(0).is_some());
        set(edge_bit::GO_INLINED, name(1).is_some());
        packer.number(bits);
        for value in default.into_iter().chain(&given) {
            packer.text(&value.to_string());
        }
        if let Some(key) = merge_key {
            packer.text(key);
        }
        if let Some(proto) = proto {
            self.proto(packer, proto, schema)?;
        }
        for name in [name(0), name(1)].into_iter().flatten() {
            packer.text(name);
        }
        if let Some(target) = target {
            let index = self.data.types.keys().position(|name| name == target);
            packer.number(index.ok_or_else(|| format!("{}: unknown type {target}", self.definition))? as u32);
            return Ok(());
        }
        let inner = proto.and_then(|proto| inner_field(&self.data.messages, proto));
        self.node(packer, schema, &[], inner.as_ref())
    }

    /// Returns the zero value of Go for a null in a list or map of such elements, for OpenAPI documents that do not contain the value.
    fn zero_element(&self, schema: &Value) -> Option<Value> {
        let kind = match schema["$ref"].as_str() {
            Some(target) => self.data.types.get(target)?["type"].as_str().filter(|kind| *kind == "object"),
            None => schema["type"].as_str().filter(|kind| *kind != "object"),
        };
        match kind? {
            "object" => Some(json!({})),
            "string" if schema["format"].is_null() => Some(json!("")),
            "integer" => Some(json!(0)),
            "boolean" => Some(json!(false)),
            _ => None,
        }
    }

    fn proto(&self, packer: &mut Packer, proto: &ProtoField, schema: &Value) -> Result {
        let kind = proto_kind(&self.data.messages, proto, schema)?;
        packer.number(proto.number << 1 | u32::from(proto.repeated));
        packer.number(kind << 2 | proto.through.len() as u32);
        for number in &proto.through {
            packer.number(*number);
        }
        Ok(())
    }
}

/// Returns the internal format of types whose published schema is incomplete.
fn special(definition: &str, schema: &Value) -> Option<&'static str> {
    // Only definitions without properties are special; properties have separate edges.
    schema.get("properties").is_none().then_some(())?;
    if !schema["x-kubernetes-list-type"].is_null() || schema["type"] == "array" {
        return None;
    }
    let of_definition = schema.get("oneOf").is_some() || schema.get("type").is_none() || is_bare(schema);
    of_definition.then_some(())?;
    match definition.rsplit_once('.').map_or(definition, |(_, name)| name) {
        "Quantity" => Some("quantity"),
        "IntOrString" => Some("int-or-string"),
        "RawExtension" => Some("raw"),
        "FieldsV1" => Some("fields-v1"),
        "JSON" => Some("json"),
        // The fields of the schema in these unions are described as usual.
        "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray" => {
            schema.get("type").is_none().then_some("json-or")
        }
        "Time" => Some("date-time"),
        "MicroTime" => Some("micro-time"),
        _ => None,
    }
}

fn is_bare(schema: &Value) -> bool {
    schema["additionalProperties"].is_null() && schema["items"].is_null()
}

fn keeps_all(definition: &str) -> bool {
    ["RawExtension", "FieldsV1"].iter().any(|name| definition.ends_with(name))
}

/// Returns the protobuf field of map values or list items.
fn inner_field(messages: &Map<String, Value>, proto: &ProtoField) -> Option<ProtoField> {
    if let Some(value) = proto.kind.strip_prefix("map<string,").and_then(|rest| rest.strip_suffix('>')) {
        let kind = value.to_owned();
        return Some(ProtoField { through: Vec::new(), number: 2, kind, repeated: false });
    }
    if proto.repeated {
        return Some(ProtoField { repeated: false, through: Vec::new(), ..proto.clone() });
    }
    // A message that wraps a list (`ExtraValue`) has one field with the items.
    let (_, row) = messages.get(&proto.kind)?.as_object()?.iter().next()?;
    let kind = row[1].as_str()?.strip_prefix("repeated ")?.to_owned();
    Some(ProtoField { through: Vec::new(), number: row[0].as_u64()? as u32, kind, repeated: false })
}

/// Returns the number of the type, as in `ProtoKind`.
fn proto_kind(messages: &Map<String, Value>, proto: &ProtoField, schema: &Value) -> Result<u32> {
    let name = proto.kind.rsplit('.').next().unwrap_or_default();
    Ok(match proto.kind.as_str() {
        "bool" => 0,
        "int32" | "int64" => 1,
        "uint32" | "uint64" => 2,
        "double" => 3,
        "string" => 4,
        "bytes" => 5,
        kind if kind.starts_with("map<") => 7,
        _ if name == "Time" => 8,
        _ if name == "MicroTime" => 9,
        _ if name == "Quantity" => 10,
        _ if name == "IntOrString" => 11,
        _ if matches!(name, "RawExtension" | "FieldsV1" | "JSON") => 12,
        _ if name == "JSONSchemaPropsOrBool" => 13,
        _ if name == "JSONSchemaPropsOrArray" => 14,
        _ if name == "JSONSchemaPropsOrStringArray" => 15,
        _ if !proto.repeated && schema["type"] == "array" => 16,
        kind if messages.contains_key(kind) => 6,
        kind => return Err(format!("unknown protobuf type {kind}").into()),
    })
}
