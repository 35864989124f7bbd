//! Owner references.

use super::{
    layout::{BLOCK_DELETION, CONTROLLER, Layout},
    text,
};

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
    /// True if the owner is the managing controller.
    pub controller: bool,
    /// True if a foreground deletion of the owner waits for this object.
    pub block_owner_deletion: bool,
}

impl<'a> OwnerReference<'a> {
    pub(super) fn read(object: Layout<'a>, number: usize) -> Self {
        let owner = object.owner(number);
        Self {
            api_version: text(object.text(owner.api_version)),
            kind: text(object.text(owner.kind)),
            name: text(object.text(owner.name)),
            uid: text(object.text(owner.uid)),
            controller: owner.flags & CONTROLLER != 0,
            block_owner_deletion: owner.flags & BLOCK_DELETION != 0,
        }
    }

    /// Returns the group of `api_version`; empty for the core group.
    pub fn group(&self) -> &'a str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}
