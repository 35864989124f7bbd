//! The annotation of client-side apply, and the migration to server-side apply: fields that `kubectl` applied
//! on the client's side may be applied on the server's side without conflicts.

use serde_json::Value;
use windlass_schema::fields::{Conflicts, FieldSet, compare};

use super::FieldManager;
use crate::meta;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The limit of all keys and values of the annotations of an object.
const MAX_ANNOTATIONS: usize = 256 << 10;

impl FieldManager<'_> {
    /// Returns the conflicts about fields outside of the last client-side configuration. Returns `None` if
    /// there are no such conflicts.
    pub(super) fn conflicts_beside_last_applied(
        &self,
        live: &Value,
        conflicts: Conflicts,
    ) -> Option<Conflicts> {
        let Some(allowed) = self.last_applied_fields(live) else { return Some(conflicts) };
        let left: Vec<_> =
            conflicts.0.into_iter().filter(|conflict| !allowed.contains(&conflict.path)).collect();
        (!left.is_empty()).then_some(Conflicts(left))
    }

    /// Returns the fields with the values of the last client-side apply.
    fn last_applied_fields(&self, live: &Value) -> Option<FieldSet> {
        let applied: Value = serde_json::from_str(annotation(live)?).ok()?;
        if applied.get("apiVersion").and_then(Value::as_str) != Some(self.resource.api_version()) {
            return None;
        }
        let schema = self.resource.schema.get().root();
        let fields = FieldSet::of(schema, &applied).ok()?;
        let changes = compare(schema, &applied, live).ok()?;
        Some(fields.difference(&changes.modified).difference(&changes.added).difference(&changes.removed))
    }
}

fn annotation(object: &Value) -> Option<&str> {
    let text = object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str()?;
    (!text.is_empty()).then_some(text)
}

/// Writes the applied configuration into an existing annotation. Removes an annotation that would be too
/// large.
pub(super) fn renew(object: &mut Value, config: &Value) {
    if annotation(object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(annotations) = config.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
    }
    let Some(annotations) = meta::metadata_mut(object).get_mut("annotations").and_then(Value::as_object_mut)
    else {
        return;
    };
    annotations.insert(ANNOTATION.to_owned(), format!("{config}\n").into());
    let size: usize =
        annotations.iter().map(|(key, value)| key.len() + value.as_str().map_or(0, str::len)).sum();
    if size > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}
