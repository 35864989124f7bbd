//! Who is told of changes.

use crate::{Delta, RawObject};

/// Is told of every change, in order, one call at a time.
///
/// A handler should do little, usually put a key into a queue. One that is slow is told the latest state of each object
/// instead of every state, once it has fallen behind; it never holds up the cache or another handler.
pub trait Handler: Send + Sync {
    /// An object appeared. `initial`: it was there when the watch or this handler began.
    fn on_add(&self, object: &RawObject, initial: bool);
    /// An object changed. On a resync both are the same.
    fn on_update(&self, old: &RawObject, new: &RawObject);
    /// An object is gone. `final_state_unknown`: the deletion itself was missed, `last` may be old.
    fn on_delete(&self, last: &RawObject, final_state_unknown: bool);
}

impl<H: Handler + ?Sized> Handler for std::sync::Arc<H> {
    fn on_add(&self, object: &RawObject, initial: bool) {
        (**self).on_add(object, initial);
    }

    fn on_update(&self, old: &RawObject, new: &RawObject) {
        (**self).on_update(old, new);
    }

    fn on_delete(&self, last: &RawObject, final_state_unknown: bool) {
        (**self).on_delete(last, final_state_unknown);
    }
}

pub(super) fn tell(handler: &dyn Handler, delta: &Delta) {
    match delta {
        Delta::Added { object, initial } => handler.on_add(object, *initial),
        Delta::Updated { old, new } => handler.on_update(old, new),
        Delta::Deleted { last, final_state_unknown } => handler.on_delete(last, *final_state_unknown),
    }
}
