//! The subjects of a flow schema.

use serde_json::Value;

use crate::auth::Identity;
use windlass_kinds::kind_names::SERVICE_ACCOUNT;

/// The prefix of the user names of service accounts.
const PREFIX: &str = "system:serviceaccount:";

/// A user, or a set of users.
#[derive(Debug, PartialEq)]
pub(super) enum Subject {
    Everybody,
    User(String),
    Group(String),
    /// A service account. `None`: all service accounts of the namespace.
    ServiceAccount {
        namespace: String,
        name: Option<String>,
    },
}

impl Subject {
    /// Reads a subject. Returns `None` for a subject that matches no user.
    pub(super) fn read(subject: &Value) -> Option<Self> {
        let text = |pointer: &str| subject.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        match subject["kind"].as_str()? {
            "User" => Some(text("/user/name")?).map(|name| any_or(name, Self::User)),
            "Group" => Some(text("/group/name")?).map(|name| any_or(name, Self::Group)),
            SERVICE_ACCOUNT => Some(Self::ServiceAccount {
                namespace: text("/serviceAccount/namespace")?,
                name: text("/serviceAccount/name").filter(|name| name != "*"),
            }),
            _ => None,
        }
    }

    pub(super) fn matches(&self, identity: &Identity) -> bool {
        match self {
            Self::Everybody => true,
            Self::User(name) => identity.name() == name,
            Self::Group(name) => identity.is_in(name),
            Self::ServiceAccount { namespace, name } => {
                let account = identity.name().strip_prefix(PREFIX);
                let of_namespace = account.and_then(|account| account.strip_prefix(namespace.as_str()));
                let account = of_namespace.and_then(|account| account.strip_prefix(':'));
                account.is_some_and(|account| name.as_ref().is_none_or(|name| account == name))
            }
        }
    }
}

fn any_or(name: String, subject: fn(String) -> Subject) -> Subject {
    if name == "*" { Subject::Everybody } else { subject(name) }
}
