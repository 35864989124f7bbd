//! Handlers of typed changes.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use windlass_cache::{Decoder, Delta, ObjectKey};

use crate::error::Error;

/// Handles the changes of the objects of a kind, in order, one call at a time. A handler should be short, and
/// only add a key to a queue.
///
/// [`ResourceEventHandlerFuncs`] makes a handler from closures.
pub trait ResourceEventHandler<K>: Send + Sync + 'static {
    /// Handles an object that appeared. `is_in_initial_list` is true for an object that existed before the handler was added.
    fn on_add(&self, object: &Arc<K>, is_in_initial_list: bool);

    /// Handles a change. A resync calls the method for each object with equal resource versions in `old` and
    /// `new`.
    fn on_update(&self, old: &Arc<K>, new: &Arc<K>);

    /// Handles an object that is gone. `final_state_unknown` is true if the deletion itself was missed, and
    /// `last` may be older than the final state. Go calls such a deletion a tombstone.
    fn on_delete(&self, last: &Arc<K>, final_state_unknown: bool);

    /// Handles an object that does not decode into `K`. No other method is called for the object. Default:
    /// logs an error.
    fn on_undecodable(&self, key: &ObjectKey, error: &Error) {
        tracing::error!(object = %key, %error, "an object does not decode; its event handler is not called");
    }
}

type Add<K> = Box<dyn Fn(&Arc<K>) + Send + Sync>;
type Update<K> = Box<dyn Fn(&Arc<K>, &Arc<K>) + Send + Sync>;

/// An event handler made of up to three functions.
///
/// ```
/// # use std::sync::Arc;
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_core::ResourceExt as _;
/// use windlass_runtime::informer::ResourceEventHandlerFuncs;
///
/// let handler = ResourceEventHandlerFuncs::<Pod>::new()
///     .add_func(|pod| println!("added {}", pod.name_any()))
///     .update_func(|old, new| println!("changed: {}", old.resource_version() != new.resource_version()))
///     .delete_func(|pod| println!("deleted {}", pod.name_any()));
/// ```
pub struct ResourceEventHandlerFuncs<K> {
    add: Option<Add<K>>,
    update: Option<Update<K>>,
    delete: Option<Add<K>>,
}

impl<K> ResourceEventHandlerFuncs<K> {
    /// Makes a handler without functions.
    pub fn new() -> Self {
        Self { add: None, update: None, delete: None }
    }

    /// Sets the function for objects that appeared.
    pub fn add_func(mut self, function: impl Fn(&Arc<K>) + Send + Sync + 'static) -> Self {
        self.add = Some(Box::new(function));
        self
    }

    /// Sets the function for objects that changed; the arguments are the old and the new state.
    pub fn update_func(mut self, function: impl Fn(&Arc<K>, &Arc<K>) + Send + Sync + 'static) -> Self {
        self.update = Some(Box::new(function));
        self
    }

    /// Sets the function for objects that are gone; the argument is the last known state.
    pub fn delete_func(mut self, function: impl Fn(&Arc<K>) + Send + Sync + 'static) -> Self {
        self.delete = Some(Box::new(function));
        self
    }
}

impl<K> Default for ResourceEventHandlerFuncs<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Send + Sync + 'static> ResourceEventHandler<K> for ResourceEventHandlerFuncs<K> {
    fn on_add(&self, object: &Arc<K>, _: bool) {
        if let Some(add) = &self.add {
            add(object);
        }
    }

    fn on_update(&self, old: &Arc<K>, new: &Arc<K>) {
        if let Some(update) = &self.update {
            update(old, new);
        }
    }

    fn on_delete(&self, last: &Arc<K>, _: bool) {
        if let Some(delete) = &self.delete {
            delete(last);
        }
    }
}

impl<K> std::fmt::Debug for ResourceEventHandlerFuncs<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceEventHandlerFuncs")
            .field("add", &self.add.is_some())
            .field("update", &self.update.is_some())
            .field("delete", &self.delete.is_some())
            .finish()
    }
}

/// Decodes a change and calls the method of the handler. An old state that does not decode makes an update an addition.
pub(crate) fn dispatch<K: DeserializeOwned + Send + Sync + 'static>(
    handler: &impl ResourceEventHandler<K>,
    decoder: &Decoder<K>,
    delta: &Delta,
) {
    let object = match decoder.decode(delta.object()) {
        Ok(object) => object,
        Err(error) => return handler.on_undecodable(&delta.object().key(), &Error::other(error)),
    };
    match delta {
        Delta::Added { initial, .. } => handler.on_add(&object, *initial),
        Delta::Updated { old, .. } => match decoder.decode(old) {
            Ok(old) => handler.on_update(&old, &object),
            Err(_) => handler.on_add(&object, false),
        },
        Delta::Deleted { final_state_unknown, .. } => handler.on_delete(&object, *final_state_unknown),
    }
}
