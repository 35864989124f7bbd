//! Authorisation.
//!
//! RBAC is not evaluated. Members of `system:masters` may do everything. All users may read health and version;
//! authenticated users may also read discovery and create reviews about themselves. Everything else is forbidden.

use super::Identity;
use crate::wire::{ApiError, Denied, GroupResource};

/// The attributes of a request that authorisation depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Attributes<'a> {
    /// `get`, `list`, `create`, …; for a path that is not a resource, the HTTP method in lower case.
    pub(crate) verb: &'a str,
    pub(crate) group: &'a str,
    /// The plural name; empty for a path that is not a resource.
    pub(crate) resource: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    /// The path, if it is not a resource.
    pub(crate) path: &'a str,
}

/// The paths that all users may read.
pub(super) const PUBLIC_PATHS: &[&str] = &["/healthz", "/livez", "/readyz", "/version", "/version/"];
/// The paths that authenticated users may read. `/*` stands for everything below.
pub(super) const DISCOVERY_PATHS: &[&str] = &[
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
];
/// The reviews that authenticated users may create: those about themselves.
pub(super) const SELF_REVIEWS: &[(&str, &[&str])] = &[
    ("authorization.k8s.io", &["selfsubjectaccessreviews", "selfsubjectrulesreviews"]),
    ("authentication.k8s.io", &["selfsubjectreviews"]),
];

/// Whether `identity` may do what `attributes` say.
pub(crate) fn allowed(identity: &Identity, attributes: &Attributes<'_>) -> bool {
    if identity.is_in(Identity::MASTERS) {
        return true;
    }
    if attributes.resource.is_empty() {
        let paths = if identity.is_anonymous() { PUBLIC_PATHS } else { DISCOVERY_PATHS };
        return attributes.verb == "get"
            && paths.iter().any(|pattern| path_matches(pattern, attributes.path));
    }
    let of_self = |&(group, resources): &(&str, &[&str])| {
        group == attributes.group && resources.contains(&attributes.resource)
    };
    !identity.is_anonymous() && attributes.verb == "create" && SELF_REVIEWS.iter().any(of_self)
}

/// Authorises a request.
///
/// # Errors
/// 403 if it is forbidden.
pub(crate) fn authorize(identity: &Identity, attributes: &Attributes<'_>) -> Result<(), ApiError> {
    if allowed(identity, attributes) {
        return Ok(());
    }
    Err(ApiError::denied(&Denied {
        user: identity.name(),
        verb: attributes.verb,
        resource: GroupResource::new(attributes.group, attributes.resource),
        subresource: attributes.subresource,
        namespace: attributes.namespace,
        name: attributes.name,
        path: attributes.path,
    }))
}

fn path_matches(pattern: &str, path: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => pattern == path,
    }
}

#[cfg(test)]
mod tests;
