//! Resolves the parts of a pod that refer to other objects: environment, volumes, users, limits, credentials.
//!
//! All functions are pure: the objects are passed in. Errors have the words of the kubelet.

mod credentials;
mod environment;
mod expansion;
mod field;
mod missing;
mod objects;
mod security;
mod service_links;
mod volume;

pub(super) use self::credentials::credentials;
pub(super) use self::environment::{Scope, environment};
pub(super) use self::expansion::expand;
pub(super) use self::missing::{add_own_objects, missing_pull_secrets, unconfigurable, unmountable};
pub(super) use self::objects::{Objects, References, TokenRequest};
pub(super) use self::security::{file_group, limits, user};
pub(super) use self::volume::{MountError, VolumeContent, content, is_read_only};

#[cfg(test)]
mod tests;
