//! Lists in a strategic merge patch.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{PATCH, PatchError, Result, map, unknown_directive, wrong_type};
use crate::go::{go_map, go_type, go_value};
use crate::graph::NodeRef;

/// Merges the list of a patch into the list of an object if the schema has a merge strategy; otherwise
/// replaces the list.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    schema: Option<NodeRef<'_>>,
) -> Result<Vec<Value>> {
    let merged = schema.and_then(NodeRef::patch_meta).is_some_and(|meta| meta.merge);
    if !merged {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    if !holds_objects(&original, &patch)? {
        return scalars(original, patch);
    }
    let inner = schema.and_then(NodeRef::items);
    let Some(key) = merge_key(schema) else {
        let name = inner.and_then(NodeRef::definition).unwrap_or_default();
        return Err(PatchError::mismatch(format!("cannot merge lists without merge key for {name}")));
    };
    let (original, patch) = directives(original, patch, key)?;
    let places = Places::of(&patch, &original, Some(key));
    // An element that cannot be merged is reported before an element without a key.
    let merged = elements(original, patch, key, inner)?;
    arrange(merged, &places?, Some(key))
}

/// Sorts a merged list in the order that a patch requests. Elements of only the object keep the position.
pub(super) fn ordered(
    merged: Vec<Value>,
    order: &[Value],
    live: &[Value],
    schema: Option<NodeRef<'_>>,
) -> Result<Vec<Value>> {
    let key = merge_key(schema);
    if let Some(key) = key {
        find_all(&merged, order, key)?;
    }
    arrange(merged, &Places::of(order, live, key)?, key)
}

/// Searches each element in the order of a patch, from the start. Fails if the order has an element that is not an object, and an element
/// of the list is not found before.
fn find_all(merged: &[Value], order: &[Value], key: &str) -> Result<()> {
    let Some(index) = order.iter().position(|candidate| !candidate.is_object()) else { return Ok(()) };
    let label = |item: &Value| item.get(key).map(ToString::to_string);
    // A list and an order may have tens of thousands of elements.
    let before: BTreeSet<String> = order[..index].iter().filter_map(label).collect();
    if merged.iter().all(|item| label(item).is_some_and(|label| before.contains(&label))) {
        return Ok(());
    }
    Err(PatchError::mismatch(format!("value for key {index} is not a map")))
}

/// Returns the order of the object's list after a merge. The order decides the places of elements that only
/// the object has.
///
/// Kubernetes merges in the array of the list: deletions move the elements behind them forward, and new elements take
/// the places that become free.
pub(super) fn live_order(live: Vec<Value>, patch: &[Value], schema: Option<NodeRef<'_>>) -> Vec<Value> {
    let Some(key) = merge_key(schema) else { return live };
    let label = |item: &Value| item.get(key).map(ToString::to_string);
    let is = |item: &Value, name: &str| item.get(PATCH).is_some_and(|directive| directive == name);
    let deletions: Vec<String> = patch.iter().filter(|item| is(item, "delete")).filter_map(label).collect();
    if deletions.is_empty() {
        return live;
    }
    let mut places: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, item) in live.iter().enumerate() {
        if let Some(label) = label(item) {
            places.entry(label).or_default().push(index);
        }
    }
    let mut kept = vec![true; live.len()];
    // The free places, the last place first. Each place holds the last element before the deletion.
    let mut free = Vec::new();
    let mut last = live.len();
    for index in deletions.iter().filter_map(|label| places.remove(label)).flatten() {
        while last > 0 && !kept[last - 1] {
            last -= 1;
        }
        free.push(live[last - 1].clone());
        kept[index] = false;
    }
    if !patch.iter().any(|item| is(item, "replace")) {
        let mut place = free.len();
        for item in patch.iter().filter(|item| item.get(PATCH).is_none()) {
            let is_new = label(item).is_some_and(|label| places.insert(label, Vec::new()).is_none());
            if is_new && place > 0 {
                place -= 1;
                free[place] = item.clone();
            }
        }
    }
    let kept = live.into_iter().zip(kept).filter_map(|(item, kept)| kept.then_some(item));
    kept.chain(free.into_iter().rev()).collect()
}

/// Checks that the elements of a patch are in the order that the patch requests.
pub(super) fn check_order(patch: &[Value], order: &[Value], schema: Option<NodeRef<'_>>) -> Result<()> {
    if patch.is_empty() || order.is_empty() {
        return Ok(());
    }
    let key = merge_key(schema);
    let mut wanted = order.iter();
    for item in patch.iter().filter(|item| item.get(PATCH).is_none()) {
        let label = label(item, key)?;
        let mut found = false;
        for candidate in wanted.by_ref() {
            if self::label(candidate, key)? == label {
                found = true;
                break;
            }
        }
        if !found {
            let (patch, order) = (go_list(patch), go_list(order));
            return Err(PatchError::mismatch(format!(
                "The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n"
            )));
        }
    }
    Ok(())
}

fn go_list(items: &[Value]) -> String {
    go_value(&Value::Array(items.to_vec()))
}

fn merge_key(schema: Option<NodeRef<'_>>) -> Option<&str> {
    schema.and_then(NodeRef::patch_meta).and_then(|meta| meta.merge_key.as_deref())
}

/// Returns whether the elements are objects. Different types are an error.
pub(super) fn holds_objects(original: &[Value], patch: &[Value]) -> Result<bool> {
    let mut all = original.iter().chain(patch);
    let Some(first) = all.next() else { return Ok(false) };
    if first.is_array() {
        return Err(PatchError::mismatch("lists of lists are not supported"));
    }
    let kind = go_type(first);
    if first.is_null() || all.any(|item| go_type(item) != kind) {
        let (original, patch) = (go_list(original), go_list(patch));
        return Err(PatchError::mismatch(format!(
            "list element types are not identical: [{original} {patch}]"
        )));
    }
    Ok(first.is_object())
}

fn scalars(original: Vec<Value>, patch: Vec<Value>) -> Result<Vec<Value>> {
    let mut seen = BTreeSet::new();
    let both = original.iter().chain(&patch);
    let merged = both.filter(|item| seen.insert(item.to_string())).cloned().collect();
    arrange(merged, &Places::of(&patch, &original, None)?, None)
}

/// Applies the directives and returns both lists without directives.
fn directives(original: Vec<Value>, patch: Vec<Value>, key: &str) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut plain = Vec::new();
    let mut gone = BTreeSet::new();
    let mut replace = false;
    for item in patch {
        match item.get(PATCH).map(|directive| (directive, directive.as_str())) {
            None => plain.push(item),
            Some((_, Some("delete"))) => {
                gone.insert(label(&item, Some(key))?);
            }
            Some((_, Some("replace"))) => replace = true,
            Some((_, Some("merge"))) => {
                return Err(PatchError::mismatch("merging lists cannot yet be specified in the patch"));
            }
            Some((directive, _)) => {
                return Err(unknown_directive(
                    directive,
                    item.as_object().unwrap_or(&serde_json::Map::new()),
                ));
            }
        }
    }
    if replace {
        return Ok((plain, Vec::new()));
    }
    let stays = |item: &Value| item.get(key).is_none_or(|value| !gone.contains(&value.to_string()));
    Ok((original.into_iter().filter(stays).collect(), plain))
}

fn elements(
    mut merged: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
    schema: Option<NodeRef<'_>>,
) -> Result<Vec<Value>> {
    let mut positions = BTreeMap::new();
    for (index, item) in merged.iter().enumerate() {
        if let Some(value) = item.get(key) {
            positions.entry(value.to_string()).or_insert(index);
        }
    }
    for item in patch {
        let label = label(&item, Some(key))?;
        match (positions.get(&label), item) {
            (Some(&index), Value::Object(patch)) => {
                let Value::Object(ours) = merged[index].take() else { continue };
                merged[index] = map(ours, patch, schema)?.into();
            }
            (_, item) => {
                positions.insert(label, merged.len());
                merged.push(item);
            }
        }
    }
    Ok(merged)
}

/// Returns the text that identifies an element: the merge key, or the element itself.
fn label(item: &Value, key: Option<&str>) -> Result<String> {
    let Some(key) = key else { return Ok(item.to_string()) };
    let Value::Object(members) = item else { return Err(wrong_type("map[string]interface {}", item)) };
    let value = members.get(key).map(ToString::to_string);
    value.ok_or_else(|| {
        PatchError::mismatch(format!("map: {} does not contain declared merge key: {key}", go_map(members)))
    })
}

/// The places of elements, by [`label`].
struct Places {
    /// The places in the order that the patch requests.
    wanted: BTreeMap<String, usize>,
    /// The places in the list of the object.
    live: BTreeMap<String, usize>,
}

impl Places {
    fn of(order: &[Value], live: &[Value], key: Option<&str>) -> Result<Self> {
        let places = |list: &[Value]| -> Result<BTreeMap<String, usize>> {
            let mut places = BTreeMap::new();
            for (index, item) in list.iter().enumerate() {
                places.entry(label(item, key)?).or_insert(index);
            }
            Ok(places)
        };
        Ok(Self { wanted: places(order)?, live: places(live)? })
    }
}

/// Sorts the elements that the patch orders in that order, and all other elements as in the list of the object, and merges the two
/// sequences: by the places in the list of the object if both elements are in that list, otherwise with the elements of the patch first.
fn arrange(merged: Vec<Value>, places: &Places, key: Option<&str>) -> Result<Vec<Value>> {
    let mut named = Vec::new();
    let mut others = Vec::new();
    for item in merged {
        let label = label(&item, key)?;
        let place = places.live.get(&label).copied();
        match places.wanted.get(&label) {
            Some(position) => named.push((*position, place, item)),
            None => others.push((place.unwrap_or(0), place, item)),
        }
    }
    named.sort_by_key(|(position, ..)| *position);
    others.sort_by_key(|(position, ..)| *position);
    let mut out = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    while let (Some((_, here, _)), Some((_, there, _))) = (named.peek(), others.peek()) {
        let other_first = matches!((there, here), (Some(there), Some(here)) if there < here);
        let next = if other_first { others.next() } else { named.next() };
        out.extend(next.map(|(.., item)| item));
    }
    out.extend(named.chain(others).map(|(.., item)| item));
    Ok(out)
}
