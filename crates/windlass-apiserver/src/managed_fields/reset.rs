//! The fields that a write does not own, because it cannot change them.

use std::collections::BTreeMap;

use windlass_schema::fields::{FieldFilter, FieldPath, FieldPattern, FieldSet, PathElement, PatternElement};

use crate::resource::Resource;
use crate::strategy::Writes;

/// By version, the filter of the fields that a write owns.
pub(super) type Filters = BTreeMap<String, FieldFilter>;

/// Returns the filter for a write to a subresource, or to the object itself.
pub(super) fn filters(resource: &Resource, subresource: &str) -> Filters {
    let filter = if subresource.is_empty() && !resource.has_status() {
        None
    } else {
        resource.strategy.owns(subresource).map(filter)
    };
    filter.map(|filter| (resource.api_version().to_owned(), filter)).into_iter().collect()
}

fn filter(writes: Writes) -> FieldFilter {
    match writes {
        Writes::AllBut(paths) => FieldFilter::Exclude(set(paths)),
        // Of a status that is written by itself the metadata is not owned, even where another field could be.
        Writes::Only(["status"]) => FieldFilter::Exclude(set(&["metadata", "spec"])),
        Writes::Only(paths) => {
            let patterns = paths.iter().map(|path| FieldPattern::prefix(elements(path)));
            let nothing = FieldPattern::Members(Vec::new());
            FieldFilter::Include(patterns.reduce(FieldPattern::or).unwrap_or(nothing))
        }
    }
}

fn set(paths: &[&str]) -> FieldSet {
    let mut fields = FieldSet::default();
    for path in paths {
        fields.insert(&FieldPath::of_fields(path.split('.')));
    }
    fields
}

/// Returns the elements of a path as in [`Writes`], where `[*]` stands for the elements of a list.
fn elements(path: &str) -> Vec<PatternElement> {
    let mut elements = Vec::new();
    for name in path.split('.') {
        let (name, is_list) = name.strip_suffix("[*]").map_or((name, false), |name| (name, true));
        elements.push(PatternElement::Is(PathElement::field(name)));
        if is_list {
            elements.push(PatternElement::Any);
        }
    }
    elements
}
