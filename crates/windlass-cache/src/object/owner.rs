//! Owner references.

use super::{RawObject, layout::OwnerRecord};

/// One entry of `metadata.ownerReferences`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnerReference<'a> {
    /// Group and version of the owner.
    pub api_version: &'a str,
    /// Kind of the owner.
    pub kind: &'a str,
    /// Name of the owner.
    pub name: &'a str,
    /// The owner's uid.
    pub uid: &'a str,
    /// Whether the owner is the managing controller.
    pub controller: bool,
    /// Whether the owner's foreground deletion waits for this object.
    pub block_owner_deletion: bool,
}

impl<'a> OwnerReference<'a> {
    pub(super) fn read(object: &'a RawObject, record: &OwnerRecord) -> Self {
        Self {
            api_version: object.text(record.api_version),
            kind: object.text(record.kind),
            name: object.text(record.name),
            uid: object.text(record.uid),
            controller: record.controller,
            block_owner_deletion: record.block_owner_deletion,
        }
    }

    /// The group of `api_version`; empty for the core group.
    pub fn group(&self) -> &'a str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }
}
