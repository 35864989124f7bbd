//! A change of one object.

use crate::RawObject;

/// A change of an object, as the cache saw the change: the argument of handlers, predicates and mappers.
#[derive(Clone, Debug)]
pub enum Delta {
    /// The object appeared.
    Added {
        /// The object.
        object: RawObject,
        /// True if the object existed when the watch, or the handler, began.
        initial: bool,
    },
    /// The object changed. A resync repeats an object with `old` and `new` [the same](RawObject::is_same).
    ///
    /// The resource versions of `old` and `new` are equal, too, if the server serves the object with other content after a change of a
    /// CRD's conversion, defaults or pruning.
    Updated {
        /// The state before.
        old: RawObject,
        /// The state after.
        new: RawObject,
    },
    /// The object is gone.
    Deleted {
        /// The last known state.
        last: RawObject,
        /// True if the deletion itself was missed: `last` may be older than the final state.
        final_state_unknown: bool,
    },
}

impl Delta {
    /// Returns the current state of the object, or the last state of a deleted object.
    pub fn object(&self) -> &RawObject {
        match self {
            Self::Added { object, .. } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted { last, .. } => last,
        }
    }

    /// Returns the state before an update, then the current or last state.
    pub fn states(&self) -> impl Iterator<Item = &RawObject> {
        let old = match self {
            Self::Updated { old, .. } => Some(old),
            _ => None,
        };
        old.into_iter().chain(std::iter::once(self.object()))
    }

    /// Returns whether the object is unchanged, because the delta comes from an initial list or a resync.
    pub fn is_unchanged(&self) -> bool {
        match self {
            Self::Added { initial, .. } => *initial,
            Self::Updated { old, new } => old.is_same(new),
            Self::Deleted { .. } => false,
        }
    }
}
