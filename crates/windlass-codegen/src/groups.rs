//! The names of the Rust modules of API groups.

use std::collections::{BTreeMap, BTreeSet};

use crate::names;

/// Returns the module of a group: the first label of the group's name, such as `samplecrd` of
/// `samplecrd.k8s.io`, and `core` for the core group.
pub fn group_module(group: &str) -> String {
    match group.split('.').next().unwrap_or_default() {
        "" => "core".to_owned(),
        label => names::snake(label),
    }
}

/// Returns the modules of groups by the names of the groups. Groups whose first labels are equal have modules
/// with the whole name.
pub fn group_modules<'g>(groups: impl IntoIterator<Item = &'g str>) -> BTreeMap<String, String> {
    let groups: BTreeSet<&str> = groups.into_iter().collect();
    let module = |group: &str| {
        let label = group_module(group);
        let is_taken = groups.iter().any(|other| *other != group && group_module(other) == label);
        if is_taken && !group.is_empty() { names::snake(group) } else { label }
    };
    groups.iter().map(|group| ((*group).to_owned(), module(group))).collect()
}
