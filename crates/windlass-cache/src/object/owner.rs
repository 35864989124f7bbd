//! Owner references.

use super::{Parts, text};

/// An entry of `metadata.ownerReferences`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerReference<'a> {
    /// The group and version of the owner.
    pub api_version: &'a str,
    /// The kind of the owner.
    pub kind: &'a str,
    /// The name of the owner.
    pub name: &'a str,
    /// The uid of the owner.
    pub uid: &'a str,
    /// Whether the owner is the managing controller.
    pub controller: bool,
    /// Whether a foreground deletion of the owner waits for this object.
    pub block_owner_deletion: bool,
}

impl<'a> OwnerReference<'a> {
    pub(super) fn read(parts: &Parts<'a>, number: usize) -> Self {
        match parts {
            Parts::Plain(plain) => {
                let owner = plain.owner(number);
                Self {
                    api_version: text(plain.text(owner.api_version)),
                    kind: text(plain.text(owner.kind)),
                    name: text(plain.text(owner.name)),
                    uid: text(plain.text(owner.uid)),
                    controller: owner.controller,
                    block_owner_deletion: owner.block_owner_deletion,
                }
            }
            Parts::Shaped(shaped) => {
                let owner = shaped.owners()[number];
                Self {
                    api_version: text(shaped.optional(owner.api_version)),
                    kind: text(shaped.optional(owner.kind)),
                    name: text(shaped.optional(owner.name)),
                    uid: text(shaped.optional(owner.uid)),
                    controller: shaped.is_true(owner.controller),
                    block_owner_deletion: shaped.is_true(owner.block_owner_deletion),
                }
            }
        }
    }

    /// Returns the group of `api_version`; empty for the core group.
    pub fn group(&self) -> &'a str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}
