//! The part of a kind that needs no code.

use std::time::Duration;

use serde_json::Value;
use windlass_wire::names::{self, NameCheck};

use super::{Writes, WritesOf};
use crate::subresource::Subresource;

/// The changes that `metadata.generation` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The kind has no generation.
    None,
    /// None: it stays 1.
    Constant,
    /// Changes of the spec.
    Spec,
    /// Changes of the spec or of the annotations.
    SpecAndAnnotations,
    /// Changes of any field but metadata and status.
    All,
    /// Changes of the labels, or of any field but metadata and status.
    AllAndLabels,
}

impl Generation {
    /// Returns whether the change from `old` to `object` counts.
    pub fn changes(self, object: &Value, old: &Value) -> bool {
        match self {
            Self::None | Self::Constant => false,
            Self::Spec => object.get("spec") != old.get("spec"),
            Self::SpecAndAnnotations => {
                Self::Spec.changes(object, old)
                    || object.pointer("/metadata/annotations") != old.pointer("/metadata/annotations")
            }
            Self::AllAndLabels => {
                Self::All.changes(object, old)
                    || object.pointer("/metadata/labels") != old.pointer("/metadata/labels")
            }
            Self::All => {
                let content = |value: &'_ Value| {
                    let mut content = value.as_object().cloned().unwrap_or_default();
                    for field in ["apiVersion", "kind", "metadata", "status"] {
                        content.remove(field);
                    }
                    content
                };
                content(object) != content(old)
            }
        }
    }
}

/// The value of a selectable field for an object without a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfEmpty {
    /// A constant text.
    Text(&'static str),
    /// The value of another selectable field.
    Field(&'static str),
}

/// The dynamic admission that sees the writes of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmittedBy {
    /// Webhooks and policies.
    All,
    /// Policies alone: a broken webhook must not keep its own configuration.
    Policies,
    /// Neither webhooks nor policies.
    None,
}

/// The part of a kind that needs no code.
#[derive(Clone, Copy, Debug)]
pub struct KindConfig {
    /// The rule for names of objects.
    pub name: NameCheck,
    /// The changes that `metadata.generation` counts.
    pub generation: Generation,
    /// True if an update of an absent object creates it.
    pub create_on_update: bool,
    /// True if an update may omit the resource version.
    pub unconditional_update: bool,
    /// True if the reply to a deletion is the deleted object instead of a `Status`.
    pub returns_deleted_object: bool,
    /// True if a deletion without a propagation policy orphans the dependents of the object.
    pub orphans_by_default: bool,
    /// The fields that selectors may use, with the JSON pointer to each.
    pub selectable: &'static [(&'static str, &'static str)],
    /// The values of selectable fields for objects without a value.
    pub selectable_if_empty: &'static [(&'static str, IfEmpty)],
    /// Formats the error for a selector by an unsupported field, if the kind has a text of its own.
    pub unsupported_field: Option<fn(&str) -> String>,
    /// False if selectors may not use the namespace, although objects are in namespaces.
    pub selects_by_namespace: bool,
    /// The text of the `Warning` header for a deletion without a propagation policy.
    pub orphaning_warning: Option<&'static str>,
    /// The fields that the manager of a write to a subresource does not own, where these fields differ from the fields that the
    /// write cannot change.
    pub reset_fields: &'static [(Subresource, &'static [&'static str])],
    /// The fields that a write to the main resource and to each subresource may change. A write that is not
    /// listed may change all fields.
    pub writes: WritesOf,
    /// The time after the last write at which an object is deleted. `None` keeps objects for ever.
    pub ttl: Option<Duration>,
    /// The annotations that stand for fields of Go's internal type. Tables and partial metadata are made from that type
    /// and do not have them.
    pub encoding_annotations: &'static [&'static str],
    /// JSON pointers to defaults that a new object is stored without. The first update stores the defaults,
    /// even without another change.
    pub defaults_on_update: &'static [&'static str],
    /// The JSON pointer to the specification of pods in an object. `None` for a kind without pods.
    pub pod_spec: Option<&'static str>,
    /// The path of the objects in the storage of kube-apiserver, which errors show. `None` for the plural name.
    pub registry_path: Option<&'static str>,
    /// The group in which the objects are stored. `None` for the group of the kind.
    pub stored_in_group: Option<&'static str>,
    /// The version in which kube-apiserver stores the objects, if kube-apiserver does not serve that version.
    pub stored_in_version: Option<&'static str>,
    /// The webhooks and policies that see the writes.
    pub admitted_by: AdmittedBy,
    /// The warning of every reply about a deprecated kind.
    pub deprecation: Option<&'static str>,
    /// False if a request for a namespaced object is answered even if the namespace does not exist.
    pub needs_namespace: bool,
    /// False if the reply to a write of the status is never a table.
    pub has_status_table: bool,
    /// The missing effect of the kind, in contrast to kube-apiserver with controllers. The reply to each
    /// create and update has a warning about the missing effect.
    pub unsupported: Option<&'static str>,
}

impl KindConfig {
    /// A kind with a spec and a generation.
    pub const SPEC: Self = Self {
        name: names::subdomain_name,
        generation: Generation::Spec,
        create_on_update: false,
        unconditional_update: true,
        returns_deleted_object: false,
        orphans_by_default: false,
        selectable: &[],
        selectable_if_empty: &[],
        unsupported_field: None,
        selects_by_namespace: true,
        orphaning_warning: None,
        reset_fields: &[],
        writes: Writes::STATUS,
        ttl: None,
        encoding_annotations: &[],
        defaults_on_update: &[],
        pod_spec: None,
        registry_path: None,
        stored_in_group: None,
        stored_in_version: None,
        admitted_by: AdmittedBy::All,
        deprecation: None,
        needs_namespace: true,
        has_status_table: true,
        unsupported: None,
    };

    /// A kind without a generation.
    pub const DATA: Self = Self { generation: Generation::None, ..Self::SPEC };

    /// A custom resource.
    pub const CUSTOM: Self = Self {
        unconditional_update: false,
        generation: Generation::All,
        writes: Writes::STATUS_ONLY,
        ..Self::SPEC
    };

    /// Returns the fields that a write to the main resource, or to a subresource, may change.
    pub fn writes(&self, subresource: &Subresource) -> Option<Writes> {
        self.writes.iter().find(|(name, _)| name == subresource).map(|(_, writes)| *writes)
    }

    /// Returns the fields that the manager of a write to `subresource` does not own, including all fields
    /// below. Usually the fields that the write cannot change; some kinds differ, as in kube-apiserver.
    pub fn reset_fields(&self, subresource: &Subresource) -> &'static [&'static str] {
        if let Some((_, fields)) = self.reset_fields.iter().find(|(name, _)| name == subresource) {
            return fields;
        }
        match self.writes(subresource) {
            Some(Writes::AllBut(paths)) => paths,
            Some(Writes::Only(["status"])) => &["metadata", "spec"],
            Some(Writes::Only(_)) | None => &[],
        }
    }

    /// Returns whether objects of the kind have a generation.
    pub fn has_generation(&self) -> bool {
        self.generation != Generation::None
    }

    /// Returns the warning for each create and update of an object that is stored without effect.
    pub fn unsupported_warning(&self) -> Option<String> {
        self.unsupported.map(not_enforced)
    }

    /// Returns the fields that a field selector may use besides `metadata.name` and `metadata.namespace`.
    pub fn selectable_fields(&self) -> Vec<&'static str> {
        self.selectable.iter().map(|(field, _)| *field).collect()
    }

    /// Returns the value of a selectable field, or the empty string.
    pub fn selectable_value(&self, object: &Value, field: &str) -> String {
        let value = self.value_at(object, field);
        if !value.is_empty() {
            return value;
        }
        match self.selectable_if_empty.iter().find(|(name, _)| *name == field) {
            Some((_, IfEmpty::Text(text))) => (*text).to_owned(),
            Some((_, IfEmpty::Field(other))) => self.value_at(object, other),
            None => value,
        }
    }

    fn value_at(&self, object: &Value, field: &str) -> String {
        let pointer = self.selectable.iter().find(|(name, _)| *name == field).map(|(_, pointer)| *pointer);
        match pointer.and_then(|pointer| object.pointer(pointer)) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            _ => String::new(),
        }
    }
}

/// Formats the warning about the missing effect of a stored object.
pub(crate) fn not_enforced(effect: &str) -> String {
    format!("stored, but not enforced: {effect}")
}
