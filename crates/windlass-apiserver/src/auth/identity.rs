//! Who asks.

/// A user as the API server sees one: a name and the groups it is in.
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
    /// The group whose members may do everything.
    pub const MASTERS: &str = "system:masters";
    const AUTHENTICATED: &str = "system:authenticated";
    const UNAUTHENTICATED: &str = "system:unauthenticated";

    /// The cluster's administrator.
    pub fn admin() -> Self {
        Self::user("kubernetes-admin").with_group(Self::MASTERS)
    }

    /// An authenticated user.
    pub fn user(name: impl Into<String>) -> Self {
        Self { name: name.into(), uid: None, groups: vec![Self::AUTHENTICATED.to_owned()] }
    }

    /// Somebody as a review names them: in no groups but those it gives.
    pub(crate) fn unverified(name: impl Into<String>) -> Self {
        Self { name: name.into(), uid: None, groups: Vec::new() }
    }

    /// Someone who showed no credentials.
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            uid: None,
            groups: vec![Self::UNAUTHENTICATED.to_owned()],
        }
    }

    /// The same user, in one group more. `system:authenticated` stays the last, as the real server lists it.
    pub fn with_group(mut self, group: impl Into<String>) -> Self {
        let group = group.into();
        if !self.is_in(&group) {
            let at =
                self.groups.len() - usize::from(self.groups.last().is_some_and(|g| g == Self::AUTHENTICATED));
            self.groups.insert(at, group);
        }
        self
    }

    /// The same user, with a uid.
    pub fn with_uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = Some(uid.into());
        self
    }

    /// The user's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The user's uid, where the credentials carry one.
    pub fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// The user's groups.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// Whether the user is in `group`.
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    /// Whether these are nobody's credentials.
    pub fn is_anonymous(&self) -> bool {
        self.is_in(Self::UNAUTHENTICATED)
    }
}
