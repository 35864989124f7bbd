//! Sets of slots: the objects that have a value in an index.

use roaring::RoaringBitmap;

/// The number of an object in the store. A slot is reused after the object is removed.
pub(crate) type Slot = u32;

/// Up to this many slots, a sorted vector is smaller than a bitmap.
const FEW: usize = 64;

/// A set of slots, in a representation for the size.
#[derive(Clone, Debug)]
pub(super) enum Postings {
    One(Slot),
    #[expect(clippy::box_collection, reason = "most sets have one slot, so the enum must be small")]
    Few(Box<Vec<Slot>>),
    /// A bitmap: a common label has as many slots as there are objects.
    Many(Box<RoaringBitmap>),
}

impl Postings {
    pub(super) fn insert(&mut self, slot: Slot) {
        match self {
            Self::One(only) if *only == slot => {}
            Self::One(only) => {
                *self = Self::Few(Box::new(vec![slot.min(*only), slot.max(*only)]));
            }
            Self::Few(slots) => {
                if let Err(at) = slots.binary_search(&slot) {
                    slots.insert(at, slot);
                }
                if slots.len() > FEW {
                    *self = Self::Many(Box::new(slots.iter().copied().collect()));
                }
            }
            Self::Many(slots) => {
                slots.insert(slot);
            }
        }
    }

    /// Removes a slot; returns whether the set is now empty.
    pub(super) fn remove(&mut self, slot: Slot) -> bool {
        match self {
            Self::One(only) => *only == slot,
            Self::Few(slots) => {
                if let Ok(at) = slots.binary_search(&slot) {
                    slots.remove(at);
                }
                slots.is_empty()
            }
            Self::Many(slots) => {
                slots.remove(slot);
                slots.is_empty()
            }
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Few(slots) => slots.len(),
            Self::Many(slots) => slots.len() as usize,
        }
    }

    pub(super) fn contains(&self, slot: Slot) -> bool {
        match self {
            Self::One(only) => *only == slot,
            Self::Few(slots) => slots.binary_search(&slot).is_ok(),
            Self::Many(slots) => slots.contains(slot),
        }
    }

    /// Returns the slots in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Slot> {
        let (few, many) = match self {
            Self::One(slot) => (std::slice::from_ref(slot), None),
            Self::Few(slots) => (&slots[..], None),
            Self::Many(slots) => (&[][..], Some(slots.iter())),
        };
        few.iter().copied().chain(many.into_iter().flatten())
    }
}
