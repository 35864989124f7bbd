//! The subresources of requests.

use std::ops::Deref;

/// The subresource that a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Subresource {
    /// The object itself.
    #[default]
    None,
    /// The decision about a CertificateSigningRequest.
    Approval,
    /// The streams of a running container.
    Attach,
    /// The choice of the node of a pod.
    Binding,
    /// The ephemeral containers of a pod.
    EphemeralContainers,
    /// The deletion of a pod within the disruption budgets.
    Eviction,
    /// A command in a container.
    Exec,
    /// The finalizers in the spec of a namespace.
    Finalize,
    /// The log of a container.
    Log,
    /// Connections to the ports of a pod.
    PortForward,
    /// HTTP requests to a pod, service or node.
    Proxy,
    /// The resources of the containers of a pod.
    Resize,
    /// The replicas, in the form of a `Scale`.
    Scale,
    /// The status.
    Status,
    /// A token of a service account.
    Token,
    /// A name that no built-in resource has.
    Other(Box<str>),
}

impl Subresource {
    const KNOWN: [(&'static str, Self); 15] = [
        ("", Self::None),
        ("approval", Self::Approval),
        ("attach", Self::Attach),
        ("binding", Self::Binding),
        ("ephemeralcontainers", Self::EphemeralContainers),
        ("eviction", Self::Eviction),
        ("exec", Self::Exec),
        ("finalize", Self::Finalize),
        ("log", Self::Log),
        ("portforward", Self::PortForward),
        ("proxy", Self::Proxy),
        ("resize", Self::Resize),
        ("scale", Self::Scale),
        ("status", Self::Status),
        ("token", Self::Token),
    ];

    /// Returns the subresource with a name.
    pub fn named(name: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|(known, _)| *known == name);
        known.map_or_else(|| Self::Other(name.into()), |(_, subresource)| subresource)
    }

    /// Returns the name in paths and in rules. Empty for the object itself.
    pub fn as_str(&self) -> &str {
        match self {
            Self::None => "",
            Self::Approval => "approval",
            Self::Attach => "attach",
            Self::Binding => "binding",
            Self::EphemeralContainers => "ephemeralcontainers",
            Self::Eviction => "eviction",
            Self::Exec => "exec",
            Self::Finalize => "finalize",
            Self::Log => "log",
            Self::PortForward => "portforward",
            Self::Proxy => "proxy",
            Self::Resize => "resize",
            Self::Scale => "scale",
            Self::Status => "status",
            Self::Token => "token",
            Self::Other(name) => name,
        }
    }

    /// Returns whether the server passes a connection on, instead of an object.
    pub fn is_connection(&self) -> bool {
        matches!(self, Self::Exec | Self::Attach | Self::PortForward | Self::Proxy)
    }

    /// Returns whether a write changes a part of the stored object, under the rules of the part.
    pub fn is_part(&self) -> bool {
        matches!(
            self,
            Self::Approval | Self::EphemeralContainers | Self::Finalize | Self::Resize | Self::Status
        )
    }
}

impl Deref for Subresource {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for (name, subresource) in Subresource::KNOWN {
            assert_eq!((Subresource::named(name), subresource.as_str()), (subresource.clone(), name));
        }
        assert_eq!(Subresource::named("other").as_str(), "other");
    }
}
