//! Requests that users are not authorised to make.

use std::fmt;

use windlass_schema::go_quote;

use crate::GroupResource;

/// A request that a user is not authorised to make. `Display` writes the sentence in the error.
#[derive(Clone, Debug)]
pub struct Denied<'a> {
    /// Name of the user.
    pub user: &'a str,
    /// Verb of the request.
    pub verb: &'a str,
    /// The group and resource; empty if the path is not that of a resource.
    pub resource: GroupResource,
    /// Subresource, or empty.
    pub subresource: &'a str,
    /// Namespace, or empty.
    pub namespace: &'a str,
    /// Name of the object, or empty.
    pub name: &'a str,
    /// The path of the request; used if the path is not the path of a resource.
    pub path: &'a str,
}

impl fmt::Display for Denied<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let quote = |text: &str| go_quote(&sanitize(text));
        write!(f, "User {} cannot {} ", quote(self.user), sanitize(self.verb))?;
        // The name of a resource may be empty, where a path has two slashes.
        let is_unnamed = self.subresource.is_empty() && self.name.is_empty();
        if self.resource.is_empty() && (!self.path.is_empty() || is_unnamed) {
            return write!(f, "path {}", quote(self.path));
        }
        let resource = if self.subresource.is_empty() {
            self.resource.resource.clone()
        } else {
            format!("{}/{}", self.resource.resource, self.subresource)
        };
        write!(f, "resource {} in API group {}", quote(&resource), quote(&self.resource.group))?;
        if self.namespace.is_empty() {
            write!(f, " at the cluster scope")
        } else {
            write!(f, " in the namespace {}", quote(self.namespace))
        }
    }
}

/// Escapes the characters of HTML: a browser cannot take an error for a page.
fn sanitize(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
