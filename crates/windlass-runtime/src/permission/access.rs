//! A request in RBAC's terms.

use std::{borrow::Cow, fmt};

use http::{Method, Uri};

use super::Verb;
use crate::client::path::{ResourcePath, query_flag};

/// A request in RBAC's terms: a verb, and a resource or a path.
///
/// `Display` prints the access like a rule: `create pods in namespace default`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Access {
    pub(crate) verb: Verb,
    pub(crate) object: AccessObject,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum AccessObject {
    Resource {
        group: String,
        /// With the subresource, in the form of a rule: `pods/status`.
        resource: String,
        namespace: Option<String>,
        /// `None` if the request names no object.
        name: Option<String>,
    },
    Url(String),
}

impl Access {
    /// Returns the access of an HTTP request, in the form of the API server's authorizer. Returns `None` for
    /// a method without a verb.
    ///
    /// ```
    /// use http::{Method, Uri};
    /// use windlass_runtime::permission::Access;
    ///
    /// let uri = Uri::from_static("/api/v1/namespaces/default/pods/a/status?fieldManager=web");
    /// let access = Access::of(&Method::PATCH, &uri).expect("a verb");
    /// assert_eq!(access.to_string(), "patch pods/status \"a\" in namespace default");
    /// ```
    pub fn of(method: &Method, uri: &Uri) -> Option<Self> {
        let Some(path) = ResourcePath::parse(uri.path()) else {
            let verb = Verb::from_name(&method.as_str().to_lowercase())?;
            return Some(Self { verb, object: AccessObject::Url(uri.path().to_owned()) });
        };
        let watches = query_flag(uri.query(), "watch");
        let verb = match (method.as_str(), &path.name) {
            ("GET" | "HEAD", _) if watches => Verb::Watch,
            ("GET" | "HEAD", Some(_)) => Verb::Get,
            ("GET" | "HEAD", None) => Verb::List,
            ("POST", _) => Verb::Create,
            ("PUT", _) => Verb::Update,
            ("PATCH", _) => Verb::Patch,
            ("DELETE", Some(_)) => Verb::Delete,
            ("DELETE", None) => Verb::DeleteCollection,
            _ => return None,
        };
        let resource = match path.subresource {
            Some(subresource) => format!("{}/{subresource}", path.resource),
            None => path.resource.to_owned(),
        };
        let selected = || selected_name(uri.query()).map(Cow::into_owned);
        Some(Self {
            verb,
            object: AccessObject::Resource {
                group: path.group.to_owned(),
                resource,
                namespace: path.namespace.map(Cow::into_owned),
                name: path.name.map(Cow::into_owned).or_else(selected),
            },
        })
    }

    /// Returns the same access with another verb: a server-side apply that makes an object is a `create`, too.
    pub fn with_verb(mut self, verb: Verb) -> Self {
        self.verb = verb;
        self
    }

    /// Returns the verb.
    pub fn verb(&self) -> Verb {
        self.verb
    }

    /// Returns whether the access changes objects.
    pub fn is_write(&self) -> bool {
        matches!(self.verb, Verb::Create | Verb::Update | Verb::Patch | Verb::Delete | Verb::DeleteCollection)
    }

    /// Returns the resource, with the subresource in the form of a rule; `None` for a path without a
    /// resource.
    pub fn resource(&self) -> Option<&str> {
        match &self.object {
            AccessObject::Resource { resource, .. } => Some(resource),
            AccessObject::Url(_) => None,
        }
    }

    /// Returns the name of the object, if the request has a name.
    pub fn name(&self) -> Option<&str> {
        match &self.object {
            AccessObject::Resource { name, .. } => name.as_deref(),
            AccessObject::Url(_) => None,
        }
    }

    /// Returns whether the access is for a path without a resource.
    pub fn is_url(&self) -> bool {
        matches!(self.object, AccessObject::Url(_))
    }
}

/// Returns the name that a field selector selects: RBAC treats that name as the name of a list.
fn selected_name(query: Option<&str>) -> Option<Cow<'_, str>> {
    let (_, selector) = form_urlencoded::parse(query?.as_bytes()).find(|(key, _)| key == "fieldSelector")?;
    let name = selector.strip_prefix("metadata.name=")?;
    let name = name.strip_prefix('=').unwrap_or(name);
    (!name.is_empty() && !name.contains(',')).then(|| Cow::Owned(name.to_owned()))
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.verb)?;
        match &self.object {
            AccessObject::Url(path) => f.write_str(path),
            AccessObject::Resource { group, resource, namespace, name } => {
                f.write_str(&in_group(group, resource))?;
                if let Some(name) = name {
                    write!(f, " {name:?}")?;
                }
                match namespace {
                    Some(namespace) => write!(f, " in namespace {namespace}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Returns a resource with the group, in the syntax of `kubectl`: `deployments.apps/status`.
pub(super) fn in_group(group: &str, resource: &str) -> String {
    match (group, resource.split_once('/')) {
        ("", _) => resource.to_owned(),
        (group, None) => format!("{resource}.{group}"),
        (group, Some((resource, subresource))) => format!("{resource}.{group}/{subresource}"),
    }
}
