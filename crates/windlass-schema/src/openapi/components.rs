//! The schemas of a document's components.

use serde_json::{Map, Value, json};

use super::{Document, custom, custom_definition, metadata};
use crate::graph::{Additional, Edge, ListType, NodeRef, Type};

/// Writes all definitions that the document refers to, directly or indirectly.
pub(super) fn write(document: &mut Document<'_>) -> Map<String, Value> {
    let mut out = Map::new();
    let (group, version) = (&document.group_version.group, &document.group_version.version);
    for kind in document.custom {
        let (object, list) = custom::definitions(document.wanted_mut(), group, version, kind);
        out.insert(custom_definition(group, version, kind.kind), object);
        out.insert(custom_definition(group, version, kind.list_kind), list);
    }
    while let Some(name) = document.wanted.pop_first() {
        if out.contains_key(&name) {
            continue;
        }
        let Some(schema) = document.catalog.definition(&name) else { continue };
        let mut described = Writer { wanted: document.wanted_mut() }.node(schema.root());
        if name == metadata::OBJECT_META {
            metadata::describe(&mut described);
        }
        let kinds = kinds(document, &name);
        if !kinds.is_empty() {
            described.insert("x-kubernetes-group-version-kind".to_owned(), kinds.into());
        }
        document.wanted.retain(|name| !out.contains_key(name));
        out.insert(name, described.into());
    }
    out
}

impl Document<'_> {
    fn wanted_mut(&mut self) -> &mut std::collections::BTreeSet<String> {
        &mut self.wanted
    }
}

/// Returns the kinds that a definition describes. A type of every group (such as `DeleteOptions`) gets the core group
/// and the group of the document.
fn kinds(document: &Document<'_>, definition: &str) -> Vec<Value> {
    let gv = document.group_version;
    let of_all = definition.starts_with("io.k8s.apimachinery.");
    let kinds = document.catalog.kinds_of(definition).filter(|kind| {
        !of_all || kind.group.is_empty() || (&kind.group, &kind.version) == (&gv.group, &gv.version)
    });
    kinds.map(|kind| json!({"group": kind.group, "version": kind.version, "kind": kind.kind})).collect()
}

/// Writes nodes and records the referenced definitions.
struct Writer<'w> {
    wanted: &'w mut std::collections::BTreeSet<String>,
}

impl Writer<'_> {
    fn node(&mut self, node: NodeRef<'_>) -> Map<String, Value> {
        let mut out = Map::new();
        if !special(node, &mut out) {
            if let Some(kind) = type_name(node.kind()) {
                out.insert("type".to_owned(), kind.into());
            }
            if let Some(format) = node.format() {
                out.insert("format".to_owned(), format.into());
            }
        }
        let described_elsewhere = node.format() == Some("json-or");
        let required: Vec<&str> = node.required().collect();
        if !required.is_empty() {
            out.insert("required".to_owned(), required.into());
        }
        if let Some(rules) = node.node.rules.more.as_deref().filter(|rules| !rules.enumeration.is_empty()) {
            out.insert("enum".to_owned(), rules.enumeration.values().to_vec().into());
        }
        if !node.node.properties.is_empty() && !described_elsewhere {
            let properties = node.node.properties.iter();
            let properties: Map<_, _> =
                properties.map(|(name, edge)| (name.to_string(), self.edge(node, edge).into())).collect();
            out.insert("properties".to_owned(), properties.into());
        }
        if let Some(Additional::Schema(edge)) = &node.node.additional {
            out.insert("additionalProperties".to_owned(), self.edge(node, edge).into());
        }
        if let Some(edge) = &node.node.items {
            out.insert("items".to_owned(), self.edge(node, edge).into());
        }
        extensions(node, &mut out);
        out
    }

    fn edge(&mut self, owner: NodeRef<'_>, edge: &Edge) -> Map<String, Value> {
        let node = owner.follow(edge);
        let mut beside = Map::new();
        if let Some(default) = &edge.published {
            beside.insert("default".to_owned(), default.clone());
        }
        if let Some(patch) = edge.patch.as_deref() {
            let known =
                [(patch.merge, "merge"), (patch.retain_keys, "retainKeys"), (patch.replace, "replace")];
            let strategies: Vec<&str> =
                known.into_iter().filter_map(|(used, name)| used.then_some(name)).collect();
            if !strategies.is_empty() {
                beside.insert("x-kubernetes-patch-strategy".to_owned(), strategies.join(",").into());
            }
            if let Some(key) = &patch.merge_key {
                beside.insert("x-kubernetes-patch-merge-key".to_owned(), (**key).into());
            }
        }
        if edge.granular {
            beside.insert("x-kubernetes-map-type".to_owned(), "granular".into());
        }
        let Some(definition) = node.definition() else {
            let mut out = self.node(node);
            out.extend(beside);
            return out;
        };
        self.wanted.insert(definition.to_owned());
        let reference = json!(format!("#/components/schemas/{definition}"));
        if beside.is_empty() {
            return super::object([("$ref", reference)]);
        }
        beside.insert("allOf".to_owned(), json!([{"$ref": reference}]));
        beside
    }
}

/// Writes the types with a published schema that differs from the node. Returns `false` for other types.
fn special(node: NodeRef<'_>, out: &mut Map<String, Value>) -> bool {
    let mut one_of = |first: &str, second: &str| {
        out.insert("oneOf".to_owned(), json!([{"type": first}, {"type": second}]));
    };
    match node.format() {
        Some("quantity") => one_of("string", "number"),
        Some("int-or-string") => {
            one_of("integer", "string");
            out.insert("format".to_owned(), "int-or-string".into());
        }
        Some("raw" | "fields-v1") => {
            out.insert("type".to_owned(), "object".into());
        }
        Some("json" | "json-or") => {}
        Some("date-time" | "micro-time") => {
            out.insert("type".to_owned(), "string".into());
            out.insert("format".to_owned(), "date-time".into());
        }
        _ => return false,
    }
    true
}

fn type_name(kind: Type) -> Option<&'static str> {
    Some(match kind {
        Type::Any => return None,
        Type::Object => "object",
        Type::Array => "array",
        Type::String => "string",
        Type::Integer => "integer",
        Type::Number => "number",
        Type::Boolean => "boolean",
    })
}

fn extensions(node: NodeRef<'_>, out: &mut Map<String, Value>) {
    let list_type = node.list_type().map(|list_type| match list_type {
        ListType::Atomic => "atomic",
        ListType::Set => "set",
        ListType::Map => "map",
    });
    if let Some(list_type) = list_type {
        out.insert("x-kubernetes-list-type".to_owned(), list_type.into());
    }
    let keys: Vec<&str> = node.map_keys().collect();
    if !keys.is_empty() {
        out.insert("x-kubernetes-list-map-keys".to_owned(), keys.into());
    }
    if node.is_atomic_map() {
        out.insert("x-kubernetes-map-type".to_owned(), "atomic".into());
    }
    if let Some(unions) = &node.node.unions {
        out.insert("x-kubernetes-unions".to_owned(), unions.clone());
    }
}
