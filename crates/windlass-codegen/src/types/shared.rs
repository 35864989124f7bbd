//! The types that several versions of a group have.

use std::collections::{BTreeMap, BTreeSet};

use super::model::Type;
use super::occurrences::{Identity, Occurrences};
use crate::definition::{Definition, Version};

/// The module with these types, beside the modules of the versions.
pub(super) const MODULE: &str = "shared";

/// The types that several versions of a group have.
#[derive(Default)]
pub(super) struct Shared {
    pub(super) types: Vec<Type>,
    /// The schemas of several versions.
    identities: BTreeSet<Identity>,
    /// The names of the types that were declared.
    declared: BTreeMap<Identity, String>,
    /// Names that a version uses otherwise.
    reserved: BTreeSet<String>,
}

impl Shared {
    /// Finds the schemas that the versions of a group have in common.
    pub(super) fn of<'k>(versions: impl Iterator<Item = &'k [(&'k Definition, &'k Version)]>) -> Self {
        let mut shared = Self::default();
        let mut seen = BTreeSet::new();
        for kinds in versions {
            for (definition, _) in kinds {
                let kind = &definition.spec.names.kind;
                shared.reserved.extend([kind.clone(), format!("{kind}Spec"), format!("{kind}Status")]);
            }
            for identity in Occurrences::of(kinds).into_identities() {
                if seen.contains(&identity) {
                    shared.identities.insert(identity);
                } else {
                    seen.insert(identity);
                }
            }
        }
        shared
    }

    /// Returns whether several versions have a schema.
    pub(super) fn has(&self, identity: &Identity) -> bool {
        self.identities.contains(identity)
    }

    /// Returns the name of a type that was declared.
    pub(super) fn name_of(&self, identity: &Identity) -> Option<&String> {
        self.declared.get(identity)
    }

    /// Declares a type under a name.
    pub(super) fn declare(&mut self, identity: Identity, name: &str) {
        self.declared.insert(identity, name.to_owned());
    }

    /// Keeps a name for a type of a version.
    pub(super) fn reserve(&mut self, name: &str) {
        self.reserved.insert(name.to_owned());
    }

    /// Returns whether a type has the name.
    pub(super) fn uses(&self, name: &str) -> bool {
        self.declared.values().any(|used| used == name)
    }

    /// Returns whether a new type can have the name.
    pub(super) fn is_free(&self, name: &str) -> bool {
        !self.reserved.contains(name) && !self.uses(name)
    }
}
