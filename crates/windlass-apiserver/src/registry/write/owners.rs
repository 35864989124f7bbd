//! Owner references of an object that are given twice.

use std::collections::HashSet;

use serde_json::Value;

use crate::meta;
use crate::registry::Call;

/// The moment of a write at which duplicate owner references are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::registry) enum OwnerCheck {
    /// The object was decoded from the body of the request.
    Decoded,
    /// Mutating admission is over.
    Mutated,
}

/// Removes the owner references of an object that equal an earlier owner reference, and warns of them.
pub(in crate::registry) fn remove_duplicate_owners(
    call: &mut Call<'_>,
    object: &mut Value,
    moment: OwnerCheck,
) {
    let duplicates = take_duplicates(object);
    if duplicates.is_empty() {
        return;
    }
    let after = match moment {
        OwnerCheck::Decoded => "",
        OwnerCheck::Mutated => " after mutating admission happens",
    };
    call.warnings.push(format!(
        ".metadata.ownerReferences contains duplicate entries{after}; API server dedups owner references in 1.20+, and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
        duplicates.join(", ")
    ));
}

/// Removes the owner references that equal an earlier owner reference. Returns their uids.
fn take_duplicates(object: &mut Value) -> Vec<String> {
    let owners = meta::at(object, "/metadata/ownerReferences").and_then(Value::as_array);
    let Some(owners) = owners.filter(|owners| owners.len() > 1) else { return Vec::new() };
    let mut known = HashSet::new();
    let is_new: Vec<bool> = owners.iter().map(|owner| known.insert(properties(owner))).collect();
    if known.len() == owners.len() {
        return Vec::new();
    }
    let (mut kept, mut duplicates) = (Vec::new(), Vec::new());
    for (owner, is_new) in owners.iter().zip(is_new) {
        if is_new {
            kept.push(owner.clone());
        } else {
            duplicates.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
    }
    meta::set(object, "ownerReferences", Some(kept.into()));
    duplicates
}

/// Returns the properties that tell two owner references apart.
fn properties(owner: &Value) -> ([&str; 4], [Option<bool>; 2]) {
    let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
    let flag = |field: &str| owner.get(field).and_then(Value::as_bool);
    (["uid", "apiVersion", "kind", "name"].map(text), ["controller", "blockOwnerDeletion"].map(flag))
}
