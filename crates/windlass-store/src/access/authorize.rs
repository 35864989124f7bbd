//! Authorization: `system:masters` may do everything; roles decide about all other users.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Identity;
use super::rbac::{Rbac, RoleRef, Rule};
use crate::store::Store;
use windlass_wire::{ApiError, Denied, GroupResource};

/// The attributes of a request that authorisation depends on.
#[derive(Clone, Debug, Default)]
pub struct Attributes<'a> {
    /// `get`, `list`, `create`, …; for a path that is not a resource, the HTTP method in lower case.
    pub verb: &'a str,
    /// The API group.
    pub group: &'a str,
    /// The plural name.
    pub resource: &'a str,
    /// The subresource; empty for the object itself.
    pub subresource: &'a str,
    /// The namespace; empty outside of namespaces.
    pub namespace: &'a str,
    /// The name of the object; empty for a collection.
    pub name: &'a str,
    /// The path of a request without a resource.
    pub path: Option<&'a str>,
}

/// The decision about a user's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// True if the request is allowed.
    pub allowed: bool,
    /// The reason, for access reviews. May be empty.
    pub reason: String,
}

/// Decides about the rights of users.
pub struct Authorizer {
    rbac: Rbac,
    /// True if every request is allowed.
    always: bool,
    /// How many requests roles have allowed.
    allowed: AtomicU64,
}

impl Authorizer {
    /// Creates an authoriser that enforces roles, or an authoriser that allows every request.
    pub fn new(always: bool) -> Self {
        Self { rbac: Rbac::new(), always, allowed: AtomicU64::new(0) }
    }

    /// Decides about `request` of `identity`.
    pub fn decide(&self, store: &Store, identity: &Identity, request: &Attributes<'_>) -> Decision {
        if self.always || identity.is_in(Identity::MASTERS) {
            return Decision { allowed: true, reason: String::new() };
        }
        match self.rbac.decide(store, identity, request) {
            Ok(reason) => {
                self.allowed.fetch_add(1, Ordering::Relaxed);
                Decision { allowed: true, reason }
            }
            Err(reason) => Decision { allowed: false, reason },
        }
    }

    /// Returns how many requests roles have allowed.
    pub fn allowed_by_rbac(&self) -> u64 {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Returns whether `request` of `identity` is allowed.
    pub fn allows(&self, store: &Store, identity: &Identity, request: &Attributes<'_>) -> bool {
        self.decide(store, identity, request).allowed
    }

    /// Authorises a request.
    ///
    /// # Errors
    /// 403 for a forbidden request.
    pub fn authorize(
        &self,
        store: &Store,
        identity: &Identity,
        request: &Attributes<'_>,
    ) -> Result<(), ApiError> {
        let decision = self.decide(store, identity, request);
        if decision.allowed { Ok(()) } else { Err(forbidden(identity, request, &decision.reason)) }
    }

    /// Returns the rules of a user in a namespace, and the text of errors about missing roles.
    pub fn rules_for(&self, store: &Store, identity: &Identity, namespace: &str) -> (Vec<Rule>, String) {
        if self.always {
            return (Rule::everything().into(), String::new());
        }
        self.rbac.rules_for(store, identity, namespace)
    }

    /// Returns the rules of the role in a binding of `namespace`; `None` for a missing role.
    pub fn rules_of(&self, store: &Store, role: &RoleRef, namespace: &str) -> Option<Vec<Rule>> {
        self.rbac.rules_of(store, role, namespace)
    }

    /// Checks that a user who writes a role or a binding in `namespace` holds all that `wanted` allows.
    ///
    /// # Errors
    /// The text names the missing rules.
    pub fn confirm_no_escalation(
        &self,
        store: &Store,
        identity: &Identity,
        namespace: &str,
        wanted: &[Rule],
    ) -> Result<(), String> {
        self.rbac.confirm_no_escalation(store, identity, namespace, wanted)
    }
}

/// Returns 403 for a request that `identity` may not make.
pub fn forbidden(identity: &Identity, request: &Attributes<'_>, reason: &str) -> ApiError {
    let denied = Denied {
        user: identity.name(),
        verb: request.verb,
        resource: GroupResource::new(request.group, request.resource),
        subresource: request.subresource,
        namespace: request.namespace,
        name: request.name,
        path: request.path.unwrap_or_default(),
    };
    if reason.is_empty() {
        ApiError::denied(&denied)
    } else {
        ApiError::forbidden(&denied.resource, request.name, format_args!("{denied}: {reason}"))
    }
}
