//! The verbs of RBAC.

use std::fmt;

/// A verb of the Kubernetes API, in the usual order of roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Read an object. A controller reads from caches, which need [`List`](Self::List) and
    /// [`Watch`](Self::Watch) instead.
    Get,
    /// Read a collection.
    List,
    /// Follow the changes of a collection.
    Watch,
    /// Create objects. A server-side apply of an object that does not exist also needs this verb.
    Create,
    /// Replace objects.
    Update,
    /// Patch objects: merge patches, JSON patches, server-side apply.
    Patch,
    /// Delete an object.
    Delete,
    /// Delete a collection.
    DeleteCollection,
    /// Approve a certificate signing request.
    Approve,
    /// Sign a certificate signing request.
    Sign,
    /// Bind a role with rights that the user does not have.
    Bind,
    /// Write a role with rights that the user does not have.
    Escalate,
    /// Act as another user.
    Impersonate,
    /// Use an object, as the name of a policy says.
    Use,
    /// Post to a path that is not a resource's.
    Post,
    /// Put to a path that is not a resource's.
    Put,
    /// Ask for the head of a path that is not a resource's.
    Head,
}

impl Verb {
    const ALL: [Self; 17] = [
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Create,
        Self::Update,
        Self::Patch,
        Self::Delete,
        Self::DeleteCollection,
        Self::Approve,
        Self::Sign,
        Self::Bind,
        Self::Escalate,
        Self::Impersonate,
        Self::Use,
        Self::Post,
        Self::Put,
        Self::Head,
    ];

    /// Returns the verb in the form of a rule.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
            Self::Approve => "approve",
            Self::Sign => "sign",
            Self::Bind => "bind",
            Self::Escalate => "escalate",
            Self::Impersonate => "impersonate",
            Self::Use => "use",
            Self::Post => "post",
            Self::Put => "put",
            Self::Head => "head",
        }
    }

    /// Returns the verb that a rule writes as `name`.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verb| verb.as_str() == name)
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
