//! Compares the JSON of two objects.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Returns whether two JSON objects have the same top-level members, each with the same text, in any order.
pub(super) fn have_same_members(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (members(one), members(other));
    one.is_some() && one == other
}

/// Returns the top-level members of a JSON object; `None` if the JSON is not valid.
fn members(json: &[u8]) -> Option<BTreeMap<String, &str>> {
    let members: BTreeMap<String, &RawValue> = serde_json::from_slice(json).ok()?;
    Some(members.into_iter().map(|(name, value)| (name, value.get())).collect())
}
