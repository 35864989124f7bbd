//! Targets for patches.

use serde_json::Value;
use windlass_schema::{Catalog, go_json};
use windlass_wire::from_json_with_duplicates;
use windlass_wire::patch::{JsonPatch, Limits, merge_patch};

use crate::split;

/// Limits that short inputs exceed.
const LIMITS: Limits = Limits { depth: 12, copied_bytes: 64, work: 64 };

/// The result of a JSON patch is an error or within the limits.
pub(crate) fn json_patch(data: &[u8]) {
    let Some((document, patch)) = documents(data) else { return };
    let bound = size(&document) + size(&patch) + LIMITS.copied_bytes;
    let depth = depth(&document).max(LIMITS.depth);
    for typed in [true, false] {
        let Ok(patch) = JsonPatch::read(patch.clone(), typed) else { continue };
        let Ok(result) = patch.apply(document.clone(), &LIMITS) else { continue };
        assert!(self::depth(&result) <= depth, "the result is too deep");
        assert!(size(&result) <= bound, "the result is too large");
    }
}

/// The result of a merge patch is not deeper or larger than the document and the patch together.
pub(crate) fn merge(data: &[u8]) {
    let Some((document, patch)) = documents(data) else { return };
    let mut result = document.clone();
    merge_patch(&mut result, &patch);
    assert!(depth(&result) <= depth(&document).max(depth(&patch)), "the result is too deep");
    assert!(size(&result) <= size(&document) + size(&patch), "the result is too large");
}

/// The result of a strategic merge patch is an error, or not deeper or larger than the document and the patch together.
pub(crate) fn strategic_merge(data: &[u8]) {
    let Some((document, patch)) = documents(data) else { return };
    let Some(schema) = Catalog::builtin().schema("", "v1", "Pod") else { return };
    let depth_bound = depth(&document).max(depth(&patch));
    let size_bound = size(&document) + size(&patch);
    let Ok(result) = windlass_schema::strategic_merge(&schema, document, patch) else { return };
    assert!(depth(&result) <= depth_bound, "the result is too deep");
    assert!(size(&result) <= size_bound, "the result is too large");
}

/// Reads two JSON documents with a zero byte between them.
fn documents(data: &[u8]) -> Option<(Value, Value)> {
    let (first, second) = split(data);
    let read = |bytes| from_json_with_duplicates(bytes).ok().map(|(value, _)| value);
    read(first).zip(read(second))
}

fn size(value: &Value) -> usize {
    go_json(value).len()
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}
