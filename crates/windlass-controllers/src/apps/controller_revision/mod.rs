//! Revisions of a pod template, kept as ControllerRevisions: data, names, and the history limit.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube_core::{ObjectMeta, Resource, ResourceExt};
use serde_json::{Value, json};

use crate::adoption;

/// The label with the revision of a pod of a StatefulSet or DaemonSet.
pub(crate) const POD_REVISION: &str = "controller-revision-hash";

/// Returns the data of a revision: a strategic merge patch that restores the template.
pub(crate) fn data_of(template: &PodTemplateSpec) -> serde_json::Result<Value> {
    let mut template = serde_json::to_value(template)?;
    if let Some(fields) = template.as_object_mut() {
        fields.insert("$patch".to_owned(), "replace".into());
    }
    Ok(json!({ "spec": { "template": template } }))
}

/// Returns the template that a revision restores.
pub(crate) fn template_of(revision: &ControllerRevision) -> Option<PodTemplateSpec> {
    let mut template = revision.data.as_ref()?.0.pointer("/spec/template")?.clone();
    template.as_object_mut()?.remove("$patch");
    serde_json::from_value(template).ok()
}

/// Returns the hash of a revision's data, in the form of a name. The hash changes with each name collision.
pub(crate) fn hash(data: &Value, collisions: i32) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut text = canonical(data);
    let _ = write!(text, "{collisions}");
    let number =
        text.bytes().fold(0x811c_9dc5_u32, |state, byte| state.wrapping_mul(0x0100_0193) ^ u32::from(byte));
    number.to_string().bytes().map(|digit| char::from(LETTERS[usize::from(digit) % 27])).collect()
}

/// Returns the name of a revision.
pub(crate) fn name(owner: &str, hash: &str) -> String {
    let prefix = (0..=owner.len().min(223)).rev().find_map(|end| owner.get(..end)).unwrap_or_default();
    format!("{prefix}-{hash}")
}

/// Returns a new ControllerRevision of `owner`, with the label `label`: the hash.
pub(crate) fn new<K: Resource<DynamicType = ()>>(
    owner: &K,
    template: &PodTemplateSpec,
    data: Value,
    (label, collisions, revision): (&str, i32, i64),
) -> ControllerRevision {
    let hash = hash(&data, collisions);
    let mut labels = template.metadata.as_ref().and_then(|meta| meta.labels.clone()).unwrap_or_default();
    labels.insert(label.to_owned(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(name(&owner.name_any(), &hash)),
            namespace: owner.namespace(),
            labels: Some(labels),
            annotations: owner.meta().annotations.clone(),
            owner_references: adoption::controller_reference(owner).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision,
    }
}

/// The way to make the newest revision the revision of the current template.
#[derive(Debug, PartialEq)]
pub(crate) enum Choice {
    /// The newest revision is up to date.
    Keep(Arc<ControllerRevision>),
    /// An older revision has the same data, and becomes the newest revision.
    Renumber(Arc<ControllerRevision>, i64),
    /// There is no revision with this data.
    Create(i64),
}

/// Chooses the revision of the current template from all revisions of an owner, oldest first.
pub(crate) fn choose(oldest_first: &[Arc<ControllerRevision>], data: &Value) -> Choice {
    let same = |revision: &&Arc<ControllerRevision>| {
        revision.data.as_ref().is_some_and(|found| canonical(&found.0) == canonical(data))
    };
    let next = oldest_first.last().map_or(1, |newest| newest.revision.saturating_add(1));
    match (oldest_first.last(), oldest_first.iter().rev().find(same)) {
        (Some(newest), Some(_)) if same(&newest) => Choice::Keep(Arc::clone(newest)),
        (_, Some(older)) => Choice::Renumber(Arc::clone(older), next),
        (Some(newest), None) if restores_same(newest, data) => Choice::Keep(Arc::clone(newest)),
        _ => Choice::Create(next),
    }
}

/// Returns whether a revision from another version of this controller restores the same template.
fn restores_same(revision: &ControllerRevision, data: &Value) -> bool {
    let again = template_of(revision).and_then(|template| data_of(&template).ok());
    again.is_some_and(|again| canonical(&again) == canonical(data))
}

/// Sorts revisions, oldest first.
pub(crate) fn sort(revisions: &mut [Arc<ControllerRevision>]) {
    revisions.sort_by_cached_key(|revision| {
        let created = revision.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (revision.revision, created, revision.metadata.name.clone())
    });
}

/// Returns the revisions to delete: the oldest unused revisions, until at most `limit` unused revisions are
/// left.
pub(crate) fn surplus(
    oldest_first: &[Arc<ControllerRevision>],
    in_use: &BTreeSet<String>,
    limit: Option<i32>,
) -> Vec<Arc<ControllerRevision>> {
    let mut idle: Vec<_> =
        oldest_first.iter().filter(|revision| !in_use.contains(&revision.name_any())).cloned().collect();
    let Ok(limit) = usize::try_from(limit.unwrap_or(10)) else { return Vec::new() };
    idle.truncate(idle.len().saturating_sub(limit));
    idle
}

/// Returns JSON with sorted keys and with the escapes of Go's encoder: hashes then equal Kubernetes' hashes.
pub(crate) fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(escaped, "\\u{:04x}", u32::from(c));
            }
            c => escaped.push(c),
        }
    }
    escaped
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(key, _)| key.as_str());
            out.push('{');
            for (n, (key, value)) in sorted.into_iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                let _ = write!(out, "{}:", Value::from(key.as_str()));
                write_canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n > 0 { "," } else { "" });
                write_canonical(item, out);
            }
            out.push(']');
        }
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(image: &str) -> PodTemplateSpec {
        serde_json::from_value(
            json!({"spec": {"containers": [{"name": "c", "image": image, "resources": {}}]}}),
        )
        .unwrap()
    }

    fn revision(name: &str, image: &str, number: i64) -> Arc<ControllerRevision> {
        let data = data_of(&template(image)).unwrap();
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        Arc::new(ControllerRevision { metadata, data: Some(RawExtension(data)), revision: number })
    }

    #[test]
    fn a_template_survives_its_revision() {
        assert_eq!(template_of(&revision("a", "one", 1)), Some(template("one")));
    }

    #[test]
    fn keys_are_sorted_and_escaped_as_go_does() {
        let value = json!({"b": ["<&>", 1.5], "a": {"z": null, "y": "\n"}});
        assert_eq!(canonical(&value), r#"{"a":{"y":"\n","z":null},"b":["\u003c\u0026\u003e",1.5]}"#);
    }

    #[test]
    fn a_known_template_becomes_the_newest_revision_again() {
        let all = [revision("a", "one", 1), revision("b", "two", 2)];
        let choice = |image| choose(&all, &data_of(&template(image)).unwrap());
        assert_eq!(choice("two"), Choice::Keep(all[1].clone()));
        assert_eq!(choice("one"), Choice::Renumber(all[0].clone(), 3));
        assert_eq!(choice("three"), Choice::Create(3));
        assert_eq!(choose(&[], &json!({})), Choice::Create(1));
    }

    #[test]
    fn the_oldest_idle_revisions_go_first() {
        let all = [revision("a", "1", 1), revision("b", "2", 2), revision("c", "3", 3)];
        let in_use = BTreeSet::from(["b".to_owned()]);
        let names = |limit| surplus(&all, &in_use, limit).iter().map(|r| r.name_any()).collect::<Vec<_>>();
        assert_eq!(names(Some(1)), ["a"]);
        assert_eq!(names(Some(0)), ["a", "c"]);
        assert_eq!(names(None), Vec::<String>::new());
    }
}
