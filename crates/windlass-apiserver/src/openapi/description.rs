//! The content of the OpenAPI documents.

use bytes::Bytes;
use serde_json::Value;
use windlass_kinds::resources::DEFINITIONS;
use windlass_schema::{CustomKind, ExtensionDocument, GroupVersion, Gvk};

use super::documents::Document;
use super::hashes::name_of;
use crate::crd;
use crate::resource::{Resource, ServedResources};
use crate::state::State;

/// Writes the v3 document of a group version, in a piece.
pub(super) fn version_three(state: &State, served: &ServedResources, name: &str) -> Document {
    [Bytes::from(document_of(state, served, name).to_string())].into()
}

/// Writes the v2 document of the group versions `names` and of extension servers, in pieces.
pub(super) fn version_two<'a>(
    state: &State,
    served: &ServedResources,
    names: impl Iterator<Item = &'a String>,
    extensions: impl IntoIterator<Item = ExtensionDocument>,
    in_protobuf: bool,
) -> Document {
    let documents = names.map(|name| document_of(state, served, name));
    let version = state.catalog.minor_version();
    let pieces = if in_protobuf {
        windlass_schema::openapi_v2_protobuf(documents, extensions, version)
    } else {
        windlass_schema::openapi_v2(documents, extensions, version)
    };
    pieces.into_iter().map(Bytes::from).collect()
}

/// Makes the v3 document of a group version; an empty object for a group version that is not served.
fn document_of(state: &State, served: &ServedResources, name: &str) -> Value {
    let group_versions = served
        .groups()
        .iter()
        .flat_map(|group| group.versions.iter().map(move |version| (group.name.as_str(), version)));
    let found = group_versions.into_iter().find(|(group, version)| name_of(group, &version.name) == name);
    let Some((group, version)) = found else {
        return windlass_schema::openapi_v3_discovery(&state.catalog, name);
    };
    let custom: Vec<&Resource> = version
        .resources
        .values()
        .map(|resource| &**resource)
        .filter(|resource| resource.is_custom())
        .collect();
    let builtin =
        state.catalog.group_versions().iter().find(|known| name_of(&known.group, &known.version) == name);
    match builtin {
        Some(builtin) if custom.is_empty() => windlass_schema::openapi_v3(&state.catalog, builtin, &[]),
        _ => custom_document(state, group, &version.name, builtin, &custom),
    }
}

fn custom_document(
    state: &State,
    group: &str,
    version: &str,
    builtin: Option<&GroupVersion>,
    resources: &[&Resource],
) -> Value {
    let view = state.store.view();
    let definitions: Vec<Value> = resources
        .iter()
        .filter_map(|resource| resource.custom.as_ref())
        .map(|custom| view.get(&DEFINITIONS, &custom.definition).map(|stored| stored.value()))
        .map(Option::unwrap_or_default)
        .collect();
    let schemas = definitions.iter().map(|definition| {
        let versions = crd::list(&definition["spec"], "versions");
        let found = versions.iter().find(|candidate| crd::text(candidate, &["name"]) == version);
        found.and_then(|version| version.pointer("/schema/openAPIV3Schema"))
    });
    let custom: Vec<CustomKind<'_>> = resources
        .iter()
        .zip(schemas)
        .map(|(resource, schema)| CustomKind {
            kind: &resource.kind,
            list_kind: &resource.list_kind,
            plural: &resource.plural,
            schema,
            selectable_fields: resource.custom.as_ref().map_or(&[], |custom| &custom.selectable),
        })
        .collect();
    let group_version = GroupVersion {
        group: group.into(),
        version: version.into(),
        resources: builtin
            .into_iter()
            .flat_map(|builtin| builtin.resources.iter().cloned())
            .chain(resources.iter().map(|resource| described(resource)))
            .collect(),
    };
    windlass_schema::openapi_v3(&state.catalog, &group_version, &custom)
}

fn described(resource: &Resource) -> windlass_schema::Resource {
    let boxed = |names: &[String]| names.iter().map(|name| name.as_str().into()).collect::<Vec<Box<str>>>();
    windlass_schema::Resource {
        name: resource.plural.as_str().into(),
        singular: resource.singular.as_str().into(),
        kind: Gvk::new(&resource.group, &resource.version, &resource.kind),
        namespaced: resource.namespaced,
        verbs: boxed(&resource.verbs),
        short_names: boxed(&resource.short_names),
        categories: boxed(&resource.categories),
        subresources: resource
            .subresources
            .iter()
            .map(|subresource| windlass_schema::Subresource {
                name: subresource.name.as_str().into(),
                kind: Gvk::new(&subresource.group, &subresource.version, &subresource.kind),
                verbs: boxed(&subresource.verbs),
            })
            .collect(),
    }
}
