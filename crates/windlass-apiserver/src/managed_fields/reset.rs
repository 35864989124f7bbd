//! The fields that a write does not own, because the write cannot change the fields.

use std::collections::BTreeMap;

use windlass_kinds::Subresource;
use windlass_schema::fields::{FieldFilter, FieldPath, FieldSet};

use crate::resource::{Resource, ServedResources, api_version};

/// By version, the filter of the fields that a write owns.
pub(super) type Filters = BTreeMap<String, FieldFilter>;

/// Returns the filters for a write to a subresource, or to the main resource: for each version of a built-in kind, and
/// for the version of a custom resource.
pub(super) fn filters(resource: &Resource, served: &ServedResources, subresource: &Subresource) -> Filters {
    if subresource.is_empty() && !resource.has_status() {
        return Filters::new();
    }
    let reset: FieldSet = resource
        .strategy
        .config
        .reset_fields(subresource)
        .iter()
        .map(|path| FieldPath::of_fields(path.split('.')))
        .collect();
    if reset.is_empty() {
        return Filters::new();
    }
    let filter = FieldFilter::Exclude(reset);
    if resource.is_custom() {
        return Filters::from([(resource.api_version().to_owned(), filter)]);
    }
    let versions = served.group(&resource.group).into_iter().flat_map(|group| &group.versions);
    let versions = versions.filter(|version| version.resources.contains_key(&resource.plural));
    versions.map(|version| (api_version(&resource.group, &version.name), filter.clone())).collect()
}
