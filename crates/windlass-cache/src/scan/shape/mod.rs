//! What the objects of a kind have in common, kept once.
//!
//! Objects of a kind are written alike: the same members in the same order, and in many places the same value. A [`Shape`]
//! is the text of such objects with holes where values stand. An object that has one is read by comparing it with the
//! text, which is faster than reading it token by token, and kept as the values that are not the usual ones.

mod outline;
mod shapes;
mod sketch;

pub(crate) use self::shapes::Shapes;

use std::ops::Range;

use super::index::{FIELDS, Index, Text};

/// A value in the source that is not the usual one of its hole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Own {
    pub(crate) hole: HoleId,
    start: u32,
    end: u32,
}

impl Own {
    pub(crate) fn of(self, source: &[u8]) -> &[u8] {
        source.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    pub(crate) fn length(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// The number of a hole.
pub(crate) type HoleId = u16;

/// A hole, and the text around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hole {
    /// Where the text before the hole ends, and the usual value begins.
    literal_end: u32,
    /// Where the usual value ends, and the text behind the hole begins.
    usual_end: u32,
}

/// The text that some objects share.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The text, with the usual values in the holes.
    text: Box<[u8]>,
    holes: Box<[Hole]>,
    fields: Fields,
}

/// In which holes the indexed fields stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// By [`Field`](super::Field).
    pub(crate) texts: [Option<HoleId>; 6],
    pub(crate) generation: Option<HoleId>,
    /// The key lies in the shape's text.
    pub(crate) labels: Box<[(Text, HoleId)]>,
    pub(crate) owners: Box<[OwnerHoles]>,
    pub(crate) finalizers: Box<[HoleId]>,
    /// Where the annotations begin and end.
    pub(crate) annotations: Option<(Place, Place)>,
}

/// In which holes an owner reference stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnerHoles {
    pub(crate) api_version: Option<HoleId>,
    pub(crate) kind: Option<HoleId>,
    pub(crate) name: Option<HoleId>,
    pub(crate) uid: Option<HoleId>,
    pub(crate) controller: Option<HoleId>,
    pub(crate) block_owner_deletion: Option<HoleId>,
}

/// A place in the text between two holes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// So many holes are before it.
    pub(crate) holes: HoleId,
    /// Behind the last of them.
    pub(crate) offset: u32,
}

impl Shape {
    pub(crate) fn holes(&self) -> usize {
        self.holes.len()
    }

    pub(crate) fn fields(&self) -> &Fields {
        &self.fields
    }

    /// The text, with the usual values in the holes.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Where in the text a hole's usual value stands.
    pub(crate) fn usual(&self, hole: usize) -> Range<usize> {
        self.holes.get(hole).map_or(0..0, |hole| hole.literal_end as usize..hole.usual_end as usize)
    }

    /// Where in the text a place is.
    pub(crate) fn offset(&self, place: Place) -> usize {
        let before = usize::from(place.holes).checked_sub(1);
        before.map_or(0, |before| self.usual(before).end) + place.offset as usize
    }

    /// Bytes of memory.
    fn memory(&self) -> usize {
        let Fields { labels, owners, finalizers, .. } = &self.fields;
        let fields = size_of_val(&**labels) + size_of_val(&**owners) + size_of_val(&**finalizers);
        self.text.len() + size_of_val(&*self.holes) + fields + size_of::<Self>()
    }

    /// Reads the indexed fields out of an object of this shape; `false` when one of them is not what it has to be.
    fn read(&self, source: &[u8], index: &mut Index) -> bool {
        let own = |hole: HoleId| {
            let number = index.own.binary_search_by_key(&hole, |own| own.hole).ok()?;
            index.own.get(number)
        };
        let mut texts = [None; FIELDS.len()];
        for (text, hole) in texts.iter_mut().zip(self.fields.texts) {
            let Some(hole) = hole else { continue };
            let Some(own) = own(hole) else { return false };
            *text = Some(Text::at(own.start as usize, own.end as usize));
        }
        let value = |hole: HoleId| match own(hole) {
            Some(own) => own.of(source),
            None => self.text.get(self.usual(hole.into())).unwrap_or_default(),
        };
        let generation = self.fields.generation.map_or(Some(0), |hole| integer(value(hole)));
        let is_flag =
            |hole: Option<HoleId>| hole.is_none_or(|hole| matches!(value(hole), b"true" | b"false"));
        let flags = |owner: &OwnerHoles| is_flag(owner.controller) && is_flag(owner.block_owner_deletion);
        let Some(generation) = generation.filter(|_| self.fields.owners.iter().all(flags)) else {
            return false;
        };
        index.texts = texts;
        index.generation = generation;
        true
    }
}

/// What is an integer for an index; JSON has a negative zero, integers have not.
pub(crate) fn integer(digits: &[u8]) -> Option<i64> {
    std::str::from_utf8(digits).ok().filter(|digits| *digits != "-0")?.parse().ok()
}
