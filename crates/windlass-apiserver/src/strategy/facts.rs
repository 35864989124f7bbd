//! What can be said about a kind without code.

use serde_json::Value;

use crate::wire::names::{self, NameCheck};

/// What `metadata.generation` counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    /// There is none.
    None,
    /// Changes of the spec.
    Spec,
    /// Changes of anything but metadata and status.
    All,
}

impl Generation {
    pub(super) fn changes(self, object: &Value, old: &Value) -> bool {
        match self {
            Self::None => false,
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

/// How a kind is handled, as far as that needs no code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// The rule for names.
    pub(crate) name: NameCheck,
    pub(crate) generation: Generation,
    /// Whether a PUT to an absent name creates.
    pub(crate) create_on_update: bool,
    /// Whether an update may come without a resourceVersion.
    pub(crate) unconditional_update: bool,
    /// Whether a deletion answers with the object.
    pub(crate) returns_deleted_object: bool,
    /// Fields that selectors may use, and where each is found.
    pub(crate) selectable: &'static [(&'static str, &'static str)],
}

impl Facts {
    /// A kind with a spec and a generation.
    pub(crate) const SPEC: Self = Self {
        name: names::subdomain_name,
        generation: Generation::Spec,
        create_on_update: false,
        unconditional_update: true,
        returns_deleted_object: false,
        selectable: &[],
    };

    /// A kind without a generation.
    pub(crate) const DATA: Self = Self { generation: Generation::None, ..Self::SPEC };

    /// A custom resource.
    pub(crate) const CUSTOM: Self =
        Self { unconditional_update: false, generation: Generation::All, ..Self::SPEC };

    /// The value of a selectable field; the empty string where it is absent.
    pub(super) fn selectable_value(&self, object: &Value, field: &str) -> String {
        let pointer = self.selectable.iter().find(|(name, _)| *name == field).map(|(_, pointer)| *pointer);
        match pointer.and_then(|pointer| object.pointer(pointer)) {
            Some(Value::String(text)) => text.clone(),
            Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
            _ => String::new(),
        }
    }
}
