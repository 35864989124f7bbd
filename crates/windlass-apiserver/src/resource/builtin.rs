//! The built-in kinds, from the catalog.

use std::sync::Arc;

use windlass_schema::{Catalog, Schema};

use super::{Resource, SchemaSource, ServedResources, ServedSubresource, api_version};
use crate::store::{Layout, ResourceId};
use windlass_kinds::kind_names::{SCALE, TOKEN_REQUEST};

/// Returns all built-in resources. Schemas are looked up at the first use.
pub(crate) fn served(catalog: &Arc<Catalog>) -> ServedResources {
    let mut served = ServedResources::default();
    for version in catalog.group_versions() {
        for resource in &version.resources {
            served.insert(Arc::new(builtin(catalog, &version.group, &version.version, resource)));
        }
    }
    served
}

fn builtin(
    catalog: &Arc<Catalog>,
    group: &str,
    version: &str,
    resource: &windlass_schema::Resource,
) -> Resource {
    let (storage, storage_version) = storage(catalog, group, version, &resource.name);
    let kind = resource.kind.kind.to_string();
    let owned = |names: &[Box<str>]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    let subresources = resource.subresources.iter().map(|subresource| ServedSubresource {
        name: subresource.name.to_string(),
        group: subresource.kind.group.to_string(),
        version: subresource.kind.version.to_string(),
        kind: subresource.kind.kind.to_string(),
        verbs: owned(&subresource.verbs),
    });
    let schema = {
        let (catalog, gvk) = (Arc::clone(catalog), resource.kind.clone());
        SchemaSource::lazy(move || {
            catalog.schema(&gvk.group, &gvk.version, &gvk.kind).unwrap_or_else(Schema::unconstrained)
        })
    };
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        list_kind: format!("{kind}List"),
        kind,
        plural: resource.name.to_string(),
        singular: resource.singular.to_string(),
        short_names: owned(&resource.short_names),
        categories: owned(&resource.categories),
        namespaced: resource.namespaced,
        verbs: owned(&resource.verbs),
        subresources: subresources.collect(),
        storage_strategy: windlass_kinds::of(&storage.group, &storage.resource),
        storage,
        storage_version: storage_version.into(),
        layout: Layout { api_version: api_version(group, version).into(), schema: 0 },
        strategy: windlass_kinds::of(group, &resource.name),
        schema,
        stored_schema: None,
        stored_fingerprint: 0,
        custom: None,
    }
}

/// Returns the resource that stands for the scales of other resources. The resource has no stored objects.
pub(crate) fn scales(catalog: &Arc<Catalog>) -> Resource {
    let kind = windlass_schema::Gvk { group: "autoscaling".into(), version: "v1".into(), kind: SCALE.into() };
    let resource = windlass_schema::Resource { name: "scales".into(), kind, ..Default::default() };
    builtin(catalog, "autoscaling", "v1", &resource)
}

/// Returns the resource that stands for token requests. The resource has no stored objects.
pub(crate) fn token_requests(catalog: &Arc<Catalog>) -> Resource {
    let group = "authentication.k8s.io";
    let kind = windlass_schema::Gvk { group: group.into(), version: "v1".into(), kind: TOKEN_REQUEST.into() };
    let resource = windlass_schema::Resource { name: "tokenrequests".into(), kind, ..Default::default() };
    builtin(catalog, group, "v1", &resource)
}

/// Returns the storage of a resource's objects, and the storage version.
fn storage(catalog: &Catalog, group: &str, version: &str, plural: &str) -> (ResourceId, String) {
    let group = windlass_kinds::of(group, plural).config.stored_in_group.unwrap_or(group);
    let preferred = catalog
        .group_versions()
        .iter()
        .filter(|candidate| &*candidate.group == group)
        .find(|candidate| candidate.resources.iter().any(|resource| &*resource.name == plural))
        .map_or(version, |candidate| &*candidate.version);
    (ResourceId::new(group, plural), api_version(group, preferred))
}
