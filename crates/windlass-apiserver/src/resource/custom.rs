//! The resources that are served for a CustomResourceDefinition.

use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};
use windlass_cel::Rules;
use windlass_kinds::Kind;
use windlass_schema::Schema;

use super::{
    CustomResource, LazyRules, Resource, ScalePaths, SchemaSource, ServedSubresource, api_version,
    version_rank,
};
use crate::conversion::Converter;
use crate::crd::{is_established, list, storage_version, text, texts};
use crate::meta;
use crate::store::{Layout, ResourceId, Stored};
use crate::webhook::Clients;
use windlass_kinds::kind_names::SCALE;
use windlass_kinds::table::TableKind;

/// The verbs of a custom resource, in the order of discovery.
const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

/// Returns a resource for each served version of an established definition; none for other definitions.
pub(crate) fn resources(
    stored: &Arc<Stored>,
    definition: &Value,
    clients: &Arc<Clients>,
) -> Vec<Arc<Resource>> {
    if !is_established(definition) {
        return Vec::new();
    }
    let versions = list(&definition["spec"], "versions");
    let conversion = &definition["spec"]["conversion"];
    let converter = (conversion["strategy"] == "Webhook").then(|| {
        let kind = text(&definition["status"]["acceptedNames"], &["kind"]);
        Arc::new(Converter::new(&conversion["webhook"], kind, Arc::clone(clients)))
    });
    let (served, unserved): (Vec<&Value>, Vec<&Value>) =
        versions.iter().partition(|version| version["served"] == true);
    let one = |version| one(stored, definition, version, converter.clone());
    let unserved: Arc<[Resource]> = unserved.into_iter().map(one).collect();
    let with_unserved = |mut resource: Resource| {
        if let Some(custom) = &mut resource.custom {
            custom.unserved = Arc::clone(&unserved);
        }
        Arc::new(resource)
    };
    served.into_iter().map(one).map(with_unserved).collect()
}

fn one(
    source: &Arc<Stored>,
    definition: &Value,
    version: &Value,
    converter: Option<Arc<Converter>>,
) -> Resource {
    let names = &definition["status"]["acceptedNames"];
    let name = |field| text(names, &[field]).to_owned();
    let owned = |field| texts(names, field).into_iter().map(str::to_owned).collect();
    let group = text(definition, &["spec", "group"]);
    let stored = storage_version(definition).unwrap_or_default();
    let storage_version: Arc<str> = api_version(group, stored).into();
    let version_name = text(version, &["name"]);
    let rules = {
        let (source, version_name) = (Arc::clone(source), version_name.to_owned());
        LazyRules::new(move || Rules::compile(open_api_schema(&source.value(), &version_name)))
    };
    let custom = CustomResource { converter, since: source.rv, rules, ..custom(definition, version) };
    let schema_of = |version_name: &str| {
        // The definition is parsed again when the schema is needed: most schemas never are.
        let (source, version_name) = (Arc::clone(source), version_name.to_owned());
        SchemaSource::lazy(move || compile(&source.value(), &version_name))
    };
    let fingerprint_of = |version| fingerprint(open_api_schema(definition, version), &custom.selectable);
    let (own_fingerprint, stored_fingerprint) = (fingerprint_of(version_name), fingerprint_of(stored));
    Resource {
        group: group.to_owned(),
        version: version_name.to_owned(),
        kind: name("kind"),
        list_kind: name("listKind"),
        plural: name("plural"),
        singular: name("singular"),
        short_names: owned("shortNames"),
        categories: owned("categories"),
        namespaced: text(definition, &["spec", "scope"]) == "Namespaced",
        verbs: VERBS.iter().map(|verb| (*verb).to_owned()).collect(),
        subresources: subresources(group, names, version),
        storage: ResourceId::new(group, text(names, &["plural"])),
        layout: Layout {
            api_version: api_version(group, version_name).into(),
            // In a version other than the storage version, both schemas prune an object if the schemas
            // differ, and a webhook converts the object.
            schema: if custom.converter.is_some() && stored != version_name {
                own_fingerprint.rotate_left(1) ^ stored_fingerprint ^ conversion_fingerprint(definition)
            } else if own_fingerprint == stored_fingerprint {
                stored_fingerprint
            } else {
                own_fingerprint.rotate_left(1) ^ stored_fingerprint
            },
        },
        storage_version,
        strategy: &Kind::CUSTOM,
        storage_strategy: &Kind::CUSTOM,
        schema: schema_of(version_name),
        stored_fingerprint,
        stored_schema: (stored != version_name).then(|| schema_of(stored)),
        custom: Some(custom),
    }
}

fn compile(definition: &Value, version: &str) -> Schema {
    match open_api_schema(definition, version) {
        Value::Null => Schema::unconstrained(),
        schema => Schema::compile(schema),
    }
}

/// Returns the schema of a version, unchanged from the definition.
fn open_api_schema<'a>(definition: &'a Value, version: &str) -> &'a Value {
    let versions = list(&definition["spec"], "versions");
    let found = versions.iter().find(|candidate| text(candidate, &["name"]) == version);
    found.map_or(&Value::Null, |version| &version["schema"]["openAPIV3Schema"])
}

/// Returns a number that differs between two schemas with different defaults, pruning or selectable fields.
fn fingerprint(schema: &Value, selectable: &[String]) -> u64 {
    let mut hasher = Sha256::new();
    hash_schema(schema, &mut hasher);
    for field in selectable {
        hasher.update(field.as_bytes());
        hasher.update(b"\0");
    }
    let digest: [u8; 32] = hasher.finalize().into();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    // Zero is the fingerprint of built-in kinds.
    u64::from_be_bytes(first).max(1)
}

/// Returns a number that differs between two webhooks that may convert differently.
fn conversion_fingerprint(definition: &Value) -> u64 {
    let digest: [u8; 32] = Sha256::digest(definition["spec"]["conversion"].to_string()).into();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_be_bytes(first)
}

/// Hashes the keywords that affect pruning and defaults.
fn hash_schema(schema: &Value, hasher: &mut Sha256) {
    let Some(keywords) = schema.as_object() else {
        hasher.update(schema.to_string().as_bytes());
        return;
    };
    hasher.update(b"{");
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "properties" => {
                hasher.update(b"properties");
                for (name, property) in value.as_object().into_iter().flatten() {
                    hasher.update(name.as_bytes());
                    hasher.update(b"\0");
                    hash_schema(property, hasher);
                }
            }
            "items" | "additionalProperties" => {
                hasher.update(keyword.as_bytes());
                hash_schema(value, hasher);
            }
            "default"
            | "nullable"
            | "type"
            | "x-kubernetes-preserve-unknown-fields"
            | "x-kubernetes-embedded-resource"
            | "x-kubernetes-int-or-string" => {
                hasher.update(keyword.as_bytes());
                hasher.update(value.to_string().as_bytes());
            }
            _ => {}
        }
    }
    hasher.update(b"}");
}

fn subresources(group: &str, names: &Value, version: &Value) -> Vec<ServedSubresource> {
    let declared = &version["subresources"];
    let one = |name: &str, group: &str, version: &str, kind: &str| ServedSubresource {
        name: name.to_owned(),
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
        verbs: SUBRESOURCE_VERBS.iter().map(|verb| (*verb).to_owned()).collect(),
    };
    let mut subresources = Vec::new();
    if declared.get("status").is_some_and(|status| !status.is_null()) {
        subresources.push(one("status", group, text(version, &["name"]), text(names, &["kind"])));
    }
    if declared.get("scale").is_some_and(Value::is_object) {
        subresources.push(one("scale", "autoscaling", "v1", SCALE));
    }
    subresources
}

fn custom(definition: &Value, version: &Value) -> CustomResource {
    let selectable = list(version, "selectableFields").iter();
    CustomResource {
        table: TableKind::custom(list(version, "additionalPrinterColumns")),
        selectable: selectable
            .filter_map(|field| text(field, &["jsonPath"]).strip_prefix('.'))
            .map(str::to_owned)
            .collect(),
        scale: version["subresources"].get("scale").filter(|scale| scale.is_object()).map(scale_paths),
        deprecation: deprecation(definition, version),
        definition: meta::name(definition).to_owned(),
        definition_uid: meta::uid(definition).to_owned(),
        generation: meta::integer(definition, "generation").unwrap_or(0),
        ..CustomResource::default()
    }
}

fn scale_paths(scale: &Value) -> ScalePaths {
    ScalePaths {
        spec_replicas: text(scale, &["specReplicasPath"]).to_owned(),
        status_replicas: text(scale, &["statusReplicasPath"]).to_owned(),
        label_selector: Some(text(scale, &["labelSelectorPath"]))
            .filter(|path| !path.is_empty())
            .map(str::to_owned),
    }
}

/// Returns the warning that goes along with every reply of a deprecated version.
fn deprecation(definition: &Value, version: &Value) -> Option<String> {
    if version["deprecated"] != true {
        return None;
    }
    let told = text(version, &["deprecationWarning"]);
    if !told.is_empty() {
        return Some(told.to_owned());
    }
    let group = text(definition, &["spec", "group"]);
    let kind = text(definition, &["spec", "names", "kind"]);
    let name = text(version, &["name"]);
    let mut better: Vec<&str> = list(&definition["spec"], "versions")
        .iter()
        .filter(|other| other["served"] == true && other["deprecated"] != true)
        .map(|other| text(other, &["name"]))
        .filter(|other| version_rank(other) < version_rank(name))
        .collect();
    better.sort_by_key(|name| version_rank(name));
    let instead = better.first().map(|best| format!("; use {group}/{best} {kind}")).unwrap_or_default();
    Some(format!("{group}/{name} {kind} is deprecated{instead}"))
}

#[cfg(test)]
mod tests;
