//! The API server's answer to a request without the right.

use super::{Access, Permissions, Verb, access::AccessObject};

/// An access that the API server's authorizer denied, parsed from the message.
///
/// ```
/// use windlass_runtime::permission::Forbidden;
///
/// let message = "pods is forbidden: User \"system:serviceaccount:ops:bot\" cannot create resource \"pods\" in API group \"\" \
///                in the namespace \"default\"";
/// let denial = Forbidden::find(message).expect("a denial");
/// assert_eq!(denial.access().to_string(), "create pods in namespace default");
/// assert!(Forbidden::find("pods \"a\" is forbidden: exceeded quota: small").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forbidden {
    access: Access,
    user: String,
}

impl Forbidden {
    /// Finds the authorizer's message in a text, such as an error with causes. A 403 of an admission plugin
    /// has no such message.
    pub fn find(text: &str) -> Option<Self> {
        let (before, rest) =
            text.split_once(" is forbidden: User \"").or_else(|| text.split_once("User \""))?;
        let (user, rest) = rest.split_once("\" cannot ")?;
        let (verb, rest) = rest.split_once(' ')?;
        let verb = Verb::from_name(verb)?;
        let object = if let Some(rest) = rest.strip_prefix("path \"") {
            AccessObject::Url(rest.split_once('"')?.0.to_owned())
        } else {
            let (resource, rest) = rest.strip_prefix("resource \"")?.split_once('"')?;
            let (group, rest) = rest.strip_prefix(" in API group \"")?.split_once('"')?;
            let namespace = rest.strip_prefix(" in the namespace \"").and_then(|rest| rest.split_once('"'));
            AccessObject::Resource {
                group: group.to_owned(),
                resource: resource.to_owned(),
                namespace: namespace.map(|(namespace, _)| namespace.to_owned()),
                name: quoted_end(before).map(ToOwned::to_owned),
            }
        };
        Some(Self { access: Access { verb, object }, user: user.to_owned() })
    }

    /// Returns the access that was denied.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Returns the declaration that would permit the access, in Rust.
    pub fn declaration(&self) -> String {
        match &self.access.object {
            AccessObject::Url(path) => {
                format!("Permission::to_url({path:?}, [Verb::{:?}])", self.access.verb)
            }
            AccessObject::Resource { resource, .. } => {
                let (resource, subresource) = match resource.split_once('/') {
                    Some((resource, subresource)) => (resource, format!(".subresource({subresource:?})")),
                    None => (resource.as_str(), String::new()),
                };
                let verb = self.access.verb;
                format!("Permission::to::<the type of {resource}>([Verb::{verb:?}]){subresource}")
            }
        }
    }

    /// Returns the advice for the denied access, given the declared rights.
    pub(crate) fn advice(&self, declared: &Permissions) -> String {
        let Self { access, user } = self;
        if declared.covers_somewhere(access) {
            return format!(
                "this right is declared, but {user} does not have it: apply the operator's manifests again"
            );
        }
        let declaration = self.declaration();
        format!(
            "this right is not declared: add `.needs({declaration})` where the controller is built, and apply the operator's manifests \
             again"
        )
    }
}

/// Returns the text in quotes at the end of a text.
fn quoted_end(text: &str) -> Option<&str> {
    let (_, name) = text.strip_suffix('"')?.rsplit_once('"')?;
    Some(name)
}
