//! The rights that a controller declares.

use super::Controller;
use crate::{handler::QueueKey, permission::Permission};

impl<Q: QueueKey> Controller<Q> {
    /// Declares a right of the reconciler, usually for writes. The rights to list and watch the watched kinds
    /// need no declaration.
    ///
    /// Declared rights become the rules of [`Manager::permissions`](crate::Manager::permissions), and an
    /// error message about a denied request names the missing declaration.
    pub fn needs(mut self, permission: Permission) -> Self {
        self.needs.push(permission);
        self
    }

    /// Returns the declared rights, and the rights of the watches.
    pub(crate) fn permissions(&self) -> Vec<Permission> {
        let watches = self.declared_watches().flat_map(|watch| {
            Permission::of_watch(&watch.kind, &watch.options)
                .map(|permission| Permission { cluster: watch.cluster.clone(), ..permission })
        });
        watches.chain(self.needs.iter().cloned()).collect()
    }
}
