//! A change of one object.

use crate::RawObject;

/// What became of one object, as the cache saw it.
#[derive(Clone, Debug)]
pub enum Delta {
    /// It appeared.
    Added {
        /// The object.
        object: RawObject,
        /// It was there when the watch, or the handler, began.
        initial: bool,
    },
    /// It changed; or, when both are the same, a resync repeats it.
    Updated {
        /// As it was.
        old: RawObject,
        /// As it is.
        new: RawObject,
    },
    /// It is gone.
    Deleted {
        /// Its last known state.
        last: RawObject,
        /// The deletion was not seen, only that the object is no longer there: `last` may be old.
        final_state_unknown: bool,
    },
}

impl Delta {
    /// The object as it is now, or was last.
    pub fn object(&self) -> &RawObject {
        match self {
            Self::Added { object, .. } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted { last, .. } => last,
        }
    }
}
