//! The parts of a write's answer that are recorded.

use std::{borrow::Cow, cell::RefCell};

use serde::Deserialize;
use windlass_cache::{ObjectKey, RawObject, ScanOptions, Scanner};

/// The answer to a deletion, or to a write of a terminating object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Answer {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    pub(super) metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    details: Option<Details>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    name: Option<String>,
    namespace: Option<String>,
    pub(super) uid: Option<String>,
    resource_version: Option<String>,
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<i64>,
    #[serde(default)]
    finalizers: Vec<serde::de::IgnoredAny>,
}

impl Metadata {
    pub(super) fn key(&self) -> Option<ObjectKey> {
        Some(ObjectKey::new(self.namespace.as_deref(), self.name.as_deref()?))
    }

    /// Returns the resource version. Only numeric resource versions can be compared.
    pub(super) fn revision(&self) -> Option<u64> {
        self.resource_version.as_deref()?.parse().ok()
    }

    pub(super) fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}

/// The spec of a Namespace. The finalizers in the spec delay the end of the namespace.
#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    finalizers: serde_json::Value,
}

#[derive(Deserialize)]
struct Details {
    uid: Option<String>,
}

impl Answer {
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// Returns the uid of an object that a DELETE removed at once. The server answers such a DELETE with a
    /// `Status`.
    pub(super) fn deleted_uid(&self) -> Option<&str> {
        if self.kind != "Status" {
            return None;
        }
        self.details.as_ref()?.uid.as_deref()
    }

    /// Returns whether the write ended the object: an immediate deletion, or the removal of the last
    /// finalizer.
    pub(super) fn is_gone(&self, delete: bool) -> bool {
        let Metadata { finalizers, deletion_timestamp, deletion_grace_period_seconds, .. } = &self.metadata;
        let held_by_spec = self.spec.finalizers.as_array().is_some_and(|finalizers| !finalizers.is_empty());
        let held = !finalizers.is_empty() || held_by_spec || deletion_grace_period_seconds.unwrap_or(0) > 0;
        !held && (delete || deletion_timestamp.is_some())
    }
}

/// The API version and the kind of an object.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Types<'a> {
    #[serde(borrow, default)]
    pub(super) api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) kind: Cow<'a, str>,
}

impl<'a> Types<'a> {
    /// Reads the types of an object. API servers write both members first; otherwise the whole object is parsed.
    pub(super) fn of(body: &'a [u8]) -> Self {
        Self::leading(body).unwrap_or_else(|| serde_json::from_slice(body).unwrap_or_default())
    }

    fn leading(body: &'a [u8]) -> Option<Self> {
        let (first, value, rest) = member(body, b'{')?;
        let (second, other, _) = member(rest, b',')?;
        match (first, second) {
            (b"kind", b"apiVersion") => Some(Self { kind: value.into(), api_version: other.into() }),
            (b"apiVersion", b"kind") => Some(Self { kind: other.into(), api_version: value.into() }),
            _ => None,
        }
    }
}

/// Splits a member with a text without escapes off compact JSON, behind a bracket or comma.
fn member(json: &[u8], before: u8) -> Option<(&[u8], &str, &[u8])> {
    let json = json.strip_prefix(&[before])?;
    let (name, json) = text(json)?;
    let (value, json) = text(json.strip_prefix(b":")?)?;
    Some((name, std::str::from_utf8(value).ok()?, json))
}

fn text(json: &[u8]) -> Option<(&[u8], &[u8])> {
    let json = json.strip_prefix(b"\"")?;
    let end = json.iter().position(|byte| *byte == b'"')?;
    (!json[..end].contains(&b'\\')).then(|| (&json[..end], &json[end + 1..]))
}

thread_local! {
    static SCANNER: RefCell<Scanner> = RefCell::new(Scanner::new(&ScanOptions::default()));
}

/// Scans the object of an answer, without `managedFields`.
pub(super) fn scan(body: &[u8]) -> Option<RawObject> {
    SCANNER.with_borrow_mut(|scanner| scanner.object(body).ok())
}

/// Scans the metadata of the object of an answer, with this API version and kind.
pub(super) fn scan_metadata(body: &[u8], api_version: &str, kind: &str) -> Option<RawObject> {
    let type_meta = Some((api_version.to_owned(), kind.to_owned()));
    let options = ScanOptions { metadata_only: true, type_meta, ..ScanOptions::default() };
    Scanner::new(&options).object(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_of_an_object_are_found_wherever_they_are() {
        for json in [
            r#"{"kind":"Pod","apiVersion":"v1","metadata":{}}"#,
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{}}"#,
            r#"{"metadata":{"name":"a"},"kind":"Pod","apiVersion":"v1"}"#,
            r#"{ "kind": "Pod", "apiVersion": "v1" }"#,
            r#"{"kind":"\u0050od","apiVersion":"v1"}"#,
        ] {
            let types = Types::of(json.as_bytes());
            assert_eq!((&*types.api_version, &*types.kind), ("v1", "Pod"), "{json}");
        }
        assert_eq!(Types::of(b"no JSON").kind, "");
    }
}
