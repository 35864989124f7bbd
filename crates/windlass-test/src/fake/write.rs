//! Writes that the fake API server has carried out.

use std::fmt;

use kube_core::ApiResource;
use serde_json::Value;
use windlass_runtime::ObjectKey;

/// The verb of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Read of an object.
    Get,
    /// Read of a collection.
    List,
    /// POST.
    Create,
    /// PUT.
    Update,
    /// A JSON patch, merge patch, or strategic merge patch.
    Patch,
    /// Server-side apply.
    Apply,
    /// Deletion of an object.
    Delete,
    /// Deletion of a collection.
    DeleteCollection,
}

impl Verb {
    /// Returns whether the verb changes objects.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Apply => "apply",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        })
    }
}

/// A successful write, dry runs excluded. `Debug` and `Display` print a line; a write can be compared with
/// such a line.
///
/// ```
/// use windlass_test::fake::Write;
///
/// fn check(writes: &[Write]) {
///     assert_eq!(writes, ["create Pod default/a-0", "patch Deployment/status default/web"]);
/// }
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Write {
    /// The verb.
    pub verb: Verb,
    /// The resource. The kind is the plural if the fake does not know the kind.
    pub resource: ApiResource,
    /// The key of the object, with a generated name if the server generated the name. The name is empty for a
    /// collection.
    pub key: ObjectKey,
    /// The subresource, such as `status`.
    pub subresource: Option<String>,
    /// The field manager that the request names.
    pub field_manager: Option<String>,
    /// The body of the request: the object, the patch, or the options of a deletion. Null if there was none.
    pub body: Value,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource.kind)?;
        if let Some(subresource) = &self.subresource {
            write!(f, "/{subresource}")?;
        }
        match (self.key.namespace(), self.key.name()) {
            (None, "") => Ok(()),
            (Some(namespace), "") => write!(f, " {namespace}"),
            _ => write!(f, " {}", self.key),
        }
    }
}

impl fmt::Debug for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

impl PartialEq<str> for Write {
    fn eq(&self, line: &str) -> bool {
        let own = self.to_string();
        own == *line
    }
}

impl PartialEq<&str> for Write {
    fn eq(&self, line: &&str) -> bool {
        self == *line
    }
}

impl PartialEq<String> for Write {
    fn eq(&self, line: &String) -> bool {
        self == line.as_str()
    }
}
