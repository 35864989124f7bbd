//! The facts about a kind that need no code.

use std::time::Duration;

use serde_json::Value;

use super::writes::{Writes, WritesOf};
use crate::wire::names::{self, NameCheck};

/// The changes that `metadata.generation` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// The kind has no generation.
    None,
    /// None: it stays 1.
    Constant,
    /// Changes of the spec.
    Spec,
    /// Changes of any field but metadata and status.
    All,
}

impl Generation {
    /// Returns whether the change from `old` to `object` counts.
    pub(super) fn changes(self, object: &Value, old: &Value) -> bool {
        match self {
            Self::None | Self::Constant => false,
            Self::Spec => object.get("spec") != old.get("spec"),
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

/// The facts about a kind that need no code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The rule for names of objects.
    pub(crate) name: NameCheck,
    /// The changes that `metadata.generation` counts.
    pub(crate) generation: Generation,
    /// True if an update of an absent object creates it.
    pub(crate) create_on_update: bool,
    /// True if an update may omit the resource version.
    pub(crate) unconditional_update: bool,
    /// True if the reply to a deletion is the deleted object instead of a `Status`.
    pub(crate) returns_deleted_object: bool,
    /// True if a deletion without a propagation policy orphans the dependents of the object.
    pub(crate) orphans_by_default: bool,
    /// The fields that selectors may use, with the JSON pointer to each.
    pub(crate) selectable: &'static [(&'static str, &'static str)],
    /// The fields that a write to the main resource and to each subresource may change. A write that is not
    /// listed may change all fields.
    pub(crate) writes: WritesOf,
    /// The time after the last write at which an object is deleted. `None` keeps objects for ever.
    pub(crate) ttl: Option<Duration>,
    /// The annotations that stand for fields of Go's internal type. Tables and partial metadata are made from that type
    /// and do not have them.
    pub(crate) encoding_annotations: &'static [&'static str],
    /// JSON pointers to defaults that a new object is stored without. The first update stores the defaults,
    /// even without another change.
    pub(crate) late_defaults: &'static [&'static str],
    /// The missing effect of the kind, in contrast to kube-apiserver with controllers. The reply to each
    /// create and update has a warning about the missing effect.
    pub(crate) unenforced: Option<&'static str>,
}

impl Facts {
    /// A kind with a spec and a generation.
    pub(crate) const SPEC: Self = Self {
        name: names::subdomain_name,
        generation: Generation::Spec,
        create_on_update: false,
        unconditional_update: true,
        returns_deleted_object: false,
        orphans_by_default: false,
        selectable: &[],
        writes: Writes::STATUS,
        ttl: None,
        encoding_annotations: &[],
        late_defaults: &[],
        unenforced: None,
    };

    /// A kind without a generation.
    pub(crate) const DATA: Self = Self { generation: Generation::None, ..Self::SPEC };

    /// A custom resource.
    pub(crate) const CUSTOM: Self = Self {
        unconditional_update: false,
        generation: Generation::All,
        writes: Writes::STATUS_ONLY,
        ..Self::SPEC
    };

    /// Returns the fields that a write to the main resource, or to a subresource, may change.
    pub(crate) fn writes(&self, subresource: &str) -> Option<Writes> {
        self.writes.iter().find(|(name, _)| *name == subresource).map(|(_, writes)| *writes)
    }

    /// Returns the warning for each create and update of an object that is stored without effect.
    pub(crate) fn unenforced_warning(&self) -> Option<String> {
        self.unenforced.map(not_enforced)
    }

    /// Returns the value of a selectable field; the empty string where it is absent.
    pub(super) fn selectable_value(&self, object: &Value, field: &str) -> String {
        let pointer = self.selectable.iter().find(|(name, _)| *name == field).map(|(_, pointer)| *pointer);
        match pointer.and_then(|pointer| object.pointer(pointer)) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            _ => String::new(),
        }
    }
}

/// Formats the warning about what does not happen with an object that is stored.
pub(super) fn not_enforced(what: &str) -> String {
    format!("stored, but not enforced: {what}")
}
