//! The user of a request.

use std::collections::BTreeMap;
use std::sync::Arc;

/// An authenticated or anonymous user: a name, a uid, groups, and extra attributes. Cheap to clone.
///
/// ```
/// use windlass_store::Identity;
///
/// let jane = Identity::user("jane").with_group("developers");
/// assert!(!jane.is_in("system:masters"));
/// assert!(jane.is_in("system:authenticated"));
/// assert!(Identity::user("system:anonymous").groups().is_empty());
/// assert!(Identity::admin().is_in("system:masters"));
///
/// let bot = Identity::service_account("default", "bot");
/// assert_eq!(bot.name(), "system:serviceaccount:default:bot");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(Arc<Fields>);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Fields {
    name: String,
    uid: Option<String>,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

impl Identity {
    /// The group with all rights.
    pub const MASTERS: &str = "system:masters";
    /// The name of the user of requests without credentials.
    pub const ANONYMOUS: &str = "system:anonymous";
    /// The group of all users with credentials.
    pub const AUTHENTICATED: &str = "system:authenticated";
    /// The group of requests without credentials.
    pub const UNAUTHENTICATED: &str = "system:unauthenticated";

    /// Returns the administrator: `kubernetes-admin`, a member of `system:masters`.
    pub fn admin() -> Self {
        Self::user("kubernetes-admin").with_group(Self::MASTERS)
    }

    /// Returns an authenticated user, a member of `system:authenticated`. A user whose credentials name `system:anonymous` is no member,
    /// as in the real server.
    pub fn user(name: impl Into<String>) -> Self {
        let user = Self::unverified(name);
        if user.name() == Self::ANONYMOUS { user } else { user.with_group(Self::AUTHENTICATED) }
    }

    /// Returns a service account, with the groups of the service account's tokens.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let groups = service_account_groups(namespace);
        groups.into_iter().fold(Self::user(service_account_name(namespace, name)), Self::with_group)
    }

    /// Returns a user without groups, as in an access review.
    pub fn unverified(name: impl Into<String>) -> Self {
        Self(Arc::new(Fields { name: name.into(), ..Fields::default() }))
    }

    /// Returns the user of requests without credentials: `system:anonymous`.
    pub fn anonymous() -> Self {
        Self::unverified(Self::ANONYMOUS).with_group(Self::UNAUTHENTICATED)
    }

    /// Adds a group. `system:authenticated` stays the last group, as in the real server.
    pub fn with_group(mut self, group: impl Into<String>) -> Self {
        let group = group.into();
        if !self.is_in(&group) {
            let groups = &mut Arc::make_mut(&mut self.0).groups;
            let last_is_fixed = groups.last().is_some_and(|last| last == Self::AUTHENTICATED);
            groups.insert(groups.len() - usize::from(last_is_fixed), group);
        }
        self
    }

    /// Adds groups as a certificate, a token or a request names the groups: in this order, with repetitions, as in the real server.
    /// `system:authenticated` stays the last group, unless `groups` has this group or `system:unauthenticated`.
    ///
    /// ```
    /// use windlass_store::Identity;
    ///
    /// let jane = Identity::user("jane").with_groups(["b", "a", "b"].map(str::to_owned));
    /// assert_eq!(jane.groups(), ["b", "a", "b", "system:authenticated"]);
    /// let jane = Identity::user("jane").with_groups(["b", "system:authenticated", "a"].map(str::to_owned));
    /// assert_eq!(jane.groups(), ["b", "system:authenticated", "a"]);
    /// ```
    pub fn with_groups(mut self, groups: impl IntoIterator<Item = String>) -> Self {
        let own = &mut Arc::make_mut(&mut self.0).groups;
        let last_is_implied = own.last().is_some_and(|last| last == Self::AUTHENTICATED);
        if last_is_implied {
            own.pop();
        }
        own.extend(groups);
        let says_so = |group: &String| group == Self::AUTHENTICATED || group == Self::UNAUTHENTICATED;
        if last_is_implied && !own.iter().any(says_so) {
            own.push(Self::AUTHENTICATED.to_owned());
        }
        self
    }

    /// Sets the uid.
    pub fn with_uid(mut self, uid: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).uid = Some(uid.into());
        self
    }

    /// Adds a value of an extra attribute, for example of `authentication.kubernetes.io/pod-name`.
    pub fn with_extra(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.0).extra.entry(key.into()).or_default().push(value.into());
        self
    }

    /// Returns the user's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the user's uid, if the credentials have a uid.
    pub fn uid(&self) -> Option<&str> {
        self.0.uid.as_deref()
    }

    /// Returns the user's groups.
    pub fn groups(&self) -> &[String] {
        &self.0.groups
    }

    /// Returns the user's extra attributes.
    pub fn extra(&self) -> &BTreeMap<String, Vec<String>> {
        &self.0.extra
    }

    /// Returns whether the user is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.0.groups.iter().any(|member| member == group)
    }

    /// Returns whether the request had no credentials.
    pub fn is_anonymous(&self) -> bool {
        self.is_in(Self::UNAUTHENTICATED)
    }
}

const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// Returns the user name of a service account.
pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT}{namespace}:{name}")
}

/// Returns the groups that every service account of a namespace is in.
pub fn service_account_groups(namespace: &str) -> [String; 2] {
    ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
}

/// Returns the namespace and the name of the service account that a user name stands for.
pub fn split_service_account(user: &str) -> Option<(&str, &str)> {
    use windlass_wire::names;
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    let is_valid =
        names::label_name(namespace, false).is_empty() && names::dns_1123_subdomain(name).is_empty();
    is_valid.then_some((namespace, name))
}

/// Returns the name of the node that a user name stands for.
pub fn split_node(user: &str) -> Option<&str> {
    let name = user.strip_prefix("system:node:")?;
    windlass_wire::names::dns_1123_subdomain(name).is_empty().then_some(name)
}
