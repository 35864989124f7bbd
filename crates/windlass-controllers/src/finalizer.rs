//! Finalizers that keep an object in use.

use kube_core::{Resource, ResourceExt};
use windlass_runtime::{Action, Result};

/// Returns whether an object that is being deleted waits for the finalizer.
pub(crate) fn is_held(object: &impl Resource, finalizer: &str) -> bool {
    let held = object.finalizers().iter().any(|other| other == finalizer);
    held && object.meta().deletion_timestamp.is_some()
}

/// Returns the object without the finalizer.
pub(crate) fn without<K: Resource + Clone>(object: &K, finalizer: &str) -> K {
    let mut next = object.clone();
    next.finalizers_mut().retain(|other| other != finalizer);
    next
}

/// Returns the end of a reconcile that has released an object. A deleted object is not an error.
pub(crate) fn done_unless_failed<K>(released: Result<K>) -> Result<Action> {
    match released {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(Action::done()),
    }
}
