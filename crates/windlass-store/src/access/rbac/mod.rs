//! Role-based access control.

mod policy;
mod rule;

use std::ops::ControlFlow;

use parking_lot::RwLock;

pub use self::policy::RoleRef;
use self::policy::{Binding, Policy};
pub use self::rule::Rule;
use self::rule::{not_covered, quoted_list};
use super::{Attributes, Identity};
use crate::store::Store;

/// Decides about the rights of users by roles and bindings.
pub(super) struct Rbac(RwLock<Policy>);

/// A role and the binding of the role; `Display` writes the reason of a decision.
struct Source<'a> {
    binding: &'a Binding,
    identity: &'a Identity,
}

impl std::fmt::Display for Source<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let quote = windlass_schema::go_quote;
        let Binding { namespace, name, role, .. } = self.binding;
        let subject = self.binding.subject_of(self.identity);
        let of = format!("of {} {} to {subject}", role.kind, quote(&role.name));
        if namespace.is_empty() {
            write!(f, "ClusterRoleBinding {} {of}", quote(name))
        } else {
            write!(f, "RoleBinding {} {of}", quote(&format!("{name}/{namespace}")))
        }
    }
}

impl Rbac {
    pub(super) fn new() -> Self {
        Self(RwLock::new(Policy::new()))
    }

    /// Calls `ask` with the present roles and bindings.
    fn with<T>(&self, store: &Store, ask: impl FnOnce(&Policy) -> T) -> T {
        let view = store.view();
        let policy = self.0.read();
        if policy.is_current(&view) {
            return ask(&policy);
        }
        drop(policy);
        let mut policy = self.0.write();
        policy.follow(store, &view);
        ask(&parking_lot::RwLockWriteGuard::downgrade(policy))
    }

    /// Decides about a request. Returns the reason of an allowed request.
    ///
    /// # Errors
    /// No rule allows the request. The text is empty, or names missing roles of the user's bindings after the name
    /// `rbac` of the authorizer.
    pub(super) fn decide(
        &self,
        store: &Store,
        identity: &Identity,
        request: &Attributes<'_>,
    ) -> Result<String, String> {
        self.with(store, |policy| {
            let mut errors = Vec::new();
            let found = visit(policy, identity, request.namespace, |source, rules| match rules {
                Ok(rules) if rules.iter().any(|rule| rule.allows(request)) => {
                    ControlFlow::Break(format!("RBAC: allowed by {source}"))
                }
                Ok(_) => ControlFlow::Continue(()),
                Err(error) => {
                    errors.push(error);
                    ControlFlow::Continue(())
                }
            });
            match found {
                ControlFlow::Break(reason) => Ok(reason),
                ControlFlow::Continue(()) if errors.is_empty() => Err(String::new()),
                ControlFlow::Continue(()) => Err(format!("rbac: RBAC: {}", aggregate(errors))),
            }
        })
    }

    /// Returns the rules of a user in a namespace, and the text of errors about missing roles.
    pub(super) fn rules_for(
        &self,
        store: &Store,
        identity: &Identity,
        namespace: &str,
    ) -> (Vec<Rule>, String) {
        self.with(store, |policy| {
            let (mut held, mut errors) = (Vec::new(), Vec::new());
            let _ = visit::<()>(policy, identity, namespace, |_, rules| {
                match rules {
                    Ok(rules) => held.extend_from_slice(rules),
                    Err(error) => errors.push(error),
                }
                ControlFlow::Continue(())
            });
            (held, aggregate(errors))
        })
    }

    /// Returns the rules of the role in a binding of `namespace`; `None` for a missing role.
    pub(super) fn rules_of(&self, store: &Store, role: &RoleRef, namespace: &str) -> Option<Vec<Rule>> {
        self.with(store, |policy| policy.rules(role, namespace).ok().map(<[Rule]>::to_vec))
    }

    /// Checks that a user who writes a role or a binding holds all that `wanted` allows.
    ///
    /// # Errors
    /// The text names the missing rules.
    pub(super) fn confirm_no_escalation(
        &self,
        store: &Store,
        identity: &Identity,
        namespace: &str,
        wanted: &[Rule],
    ) -> Result<(), String> {
        let (held, errors) = self.rules_for(store, identity, namespace);
        let missing = not_covered(&held, wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let mut message = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            windlass_schema::go_quote(identity.name()),
            quoted_list(identity.groups()),
            missing.join("\n")
        );
        if !errors.is_empty() {
            message.push_str("; resolution errors: [");
            message.push_str(&errors);
            message.push(']');
        }
        Err(message)
    }
}

/// Calls `with` for each binding of a user: cluster role bindings first, then bindings of the namespace.
fn visit<B>(
    policy: &Policy,
    identity: &Identity,
    namespace: &str,
    mut with: impl FnMut(Source<'_>, Result<&[Rule], String>) -> ControlFlow<B>,
) -> ControlFlow<B> {
    for binding in policy.cluster_bindings.of(identity, "") {
        with(Source { binding, identity }, policy.rules(&binding.role, ""))?;
    }
    if namespace.is_empty() {
        return ControlFlow::Continue(());
    }
    let prefix = format!("{namespace}/");
    for binding in policy.bindings.of(identity, &prefix) {
        with(Source { binding, identity }, policy.rules(&binding.role, namespace))?;
    }
    ControlFlow::Continue(())
}

/// Joins errors like Kubernetes: a single error stands alone, several stand in brackets, and duplicates are
/// dropped.
pub fn aggregate(errors: Vec<String>) -> String {
    let mut distinct: Vec<String> = Vec::new();
    for error in errors {
        if !distinct.contains(&error) {
            distinct.push(error);
        }
    }
    if distinct.len() > 1 { format!("[{}]", distinct.join(", ")) } else { distinct.pop().unwrap_or_default() }
}
