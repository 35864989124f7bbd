//! The fields that a write does not own, because the write cannot change the fields.

use std::collections::BTreeMap;

use windlass_kinds::Subresource;
use windlass_schema::fields::{FieldFilter, FieldPath, FieldSet};

use crate::resource::Resource;

/// By version, the filter of the fields that a write owns.
pub(super) type Filters = BTreeMap<String, FieldFilter>;

/// Returns the filter for a write to a subresource, or to the main resource.
pub(super) fn filters(resource: &Resource, subresource: &Subresource) -> Filters {
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
    Filters::from([(resource.api_version().to_owned(), FieldFilter::Exclude(reset))])
}
