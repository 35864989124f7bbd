//! The rights that a controller declares.

use super::Controller;
use crate::{handler::QueueKey, permission::Permission};

impl<Q: QueueKey> Controller<Q> {
    /// Declares a right that the reconciler needs besides those to list and watch what the controller watches: its writes, mostly.
    ///
    /// Declared rights become the rules of [`Manager::permissions`](crate::Manager::permissions), and say in an error message what to do
    /// when the server denies a request.
    pub fn needs(mut self, permission: Permission) -> Self {
        self.needs.push(permission);
        self
    }

    /// The declared rights: those of the watches, and the others.
    pub(crate) fn permissions(&self) -> Vec<Permission> {
        let watches = self.declared_watches().flat_map(|watch| {
            Permission::of_watch(&watch.kind, &watch.options)
                .map(|permission| Permission { cluster: watch.cluster.clone(), ..permission })
        });
        watches.chain(self.needs.iter().cloned()).collect()
    }
}
