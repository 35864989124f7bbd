//! The user of a request.

/// An authenticated or anonymous user: a name, and groups.
///
/// ```
/// use windlass_apiserver::Identity;
///
/// let jane = Identity::user("jane").with_group("developers");
/// assert!(!jane.is_in("system:masters"));
/// assert!(jane.is_in("system:authenticated"));
/// assert!(Identity::admin().is_in("system:masters"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    name: String,
    uid: Option<String>,
    groups: Vec<String>,
}

impl Identity {
    /// The group whose members are permitted everything.
    pub const MASTERS: &str = "system:masters";
    const AUTHENTICATED: &str = "system:authenticated";
    const UNAUTHENTICATED: &str = "system:unauthenticated";

    /// Returns the administrator: `kubernetes-admin`, a member of `system:masters`.
    pub fn admin() -> Self {
        Self::user("kubernetes-admin").with_group(Self::MASTERS)
    }

    /// Returns an authenticated user, a member of `system:authenticated`.
    pub fn user(name: impl Into<String>) -> Self {
        Self { name: name.into(), uid: None, groups: vec![Self::AUTHENTICATED.to_owned()] }
    }

    /// Returns a user without any groups, as an access review names one.
    pub(crate) fn unverified(name: impl Into<String>) -> Self {
        Self { name: name.into(), uid: None, groups: Vec::new() }
    }

    /// Returns the user of requests without credentials: `system:anonymous`.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            uid: None,
            groups: vec![Self::UNAUTHENTICATED.to_owned()],
        }
    }

    /// Adds a group. `system:authenticated` stays the last one, as in the real server.
    pub fn with_group(mut self, group: impl Into<String>) -> Self {
        let group = group.into();
        if !self.is_in(&group) {
            let at =
                self.groups.len() - usize::from(self.groups.last().is_some_and(|g| g == Self::AUTHENTICATED));
            self.groups.insert(at, group);
        }
        self
    }

    /// Sets the uid.
    pub fn with_uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = Some(uid.into());
        self
    }

    /// Returns the user's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the user's uid, if the credentials have one.
    pub fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// Returns the user's groups.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Whether the user is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Whether the request had no credentials.
    pub fn is_anonymous(&self) -> bool {
        self.is_in(Self::UNAUTHENTICATED)
    }
}
