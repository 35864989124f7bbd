//! What is served for a definition.

use serde_json::Value;
use windlass_schema::Schema;

use super::{list, storage_version, text, texts};
use crate::resource::{
    CustomResource, Resource, ScalePaths, SchemaSource, Subresource, api_version, version_rank,
};
use crate::store::ResourceId;
use crate::strategy::Generic;

/// The verbs of a custom resource, in the order that discovery shows them.
const VERBS: &[&str] = &["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const SUBRESOURCE_VERBS: &[&str] = &["get", "patch", "update"];

/// One resource for each served version of an established definition; none before it is established.
pub(crate) fn resources(definition: &Value) -> Vec<Resource> {
    if !super::is_established(definition) {
        return Vec::new();
    }
    let versions = list(&definition["spec"], "versions");
    versions
        .iter()
        .filter(|version| version["served"] == true)
        .map(|version| one(definition, version))
        .collect()
}

fn one(definition: &Value, version: &Value) -> Resource {
    let names = &definition["status"]["acceptedNames"];
    let name = |field| text(names, &[field]).to_owned();
    let owned = |field| texts(names, field).into_iter().map(str::to_owned).collect();
    let group = text(definition, &["spec", "group"]);
    let stored = storage_version(definition).unwrap_or_default();
    let schema = version["schema"]["openAPIV3Schema"].clone();
    Resource {
        group: group.to_owned(),
        version: text(version, &["name"]).to_owned(),
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
        storage_version: api_version(group, stored),
        strategy: &Generic,
        schema: SchemaSource::lazy(move || Schema::compile(&schema)),
        custom: Some(custom(definition, version)),
    }
}

fn subresources(group: &str, names: &Value, version: &Value) -> Vec<Subresource> {
    let declared = &version["subresources"];
    let one = |name: &str, group: &str, version: &str, kind: &str| Subresource {
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
        subresources.push(one("scale", "autoscaling", "v1", "Scale"));
    }
    subresources
}

fn custom(definition: &Value, version: &Value) -> CustomResource {
    let selectable = list(version, "selectableFields").iter();
    CustomResource {
        columns: list(version, "additionalPrinterColumns").to_vec(),
        selectable: selectable
            .filter_map(|field| text(field, &["jsonPath"]).strip_prefix('.'))
            .map(str::to_owned)
            .collect(),
        scale: version["subresources"].get("scale").filter(|scale| scale.is_object()).map(scale_paths),
        converted_by_webhook: text(definition, &["spec", "conversion", "strategy"]) == "Webhook",
        deprecation: deprecation(definition, version),
        // Written since this very schema, in this very version: nothing to do on a read. Anything else may be older.
        terminating: crate::meta::is_deleting(definition),
        reread: list(&definition["spec"], "versions").len() > 1
            || definition["metadata"]["generation"].as_i64().is_none_or(|generation| generation > 1),
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

/// The warning that goes along with every reply of a deprecated version.
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
