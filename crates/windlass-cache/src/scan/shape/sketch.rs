//! One object, as the shapes learn from it.

pub(super) use super::outline::Gap;
use super::{
    Fields, Hole, HoleId, OwnerHoles, Place,
    outline::{Value, outline},
};
use crate::scan::index::{FIELDS, Index, Owner, Text};

/// An object to learn from.
pub(super) struct Sketch<'a> {
    pub(super) pieces: Vec<Piece<'a>>,
    /// Members that the objects come without.
    pub(super) type_members: &'a [u8],
    fields: Fields,
    /// Where the keys of the labels lie, and their lengths.
    keys: Vec<(Place, u32)>,
}

/// Text up to a gap, and what fills the gap.
pub(super) struct Piece<'a> {
    /// As it stands in the source.
    pub(super) source: &'a [u8],
    /// What of it is kept.
    pub(super) kept: Vec<u8>,
    pub(super) gap: Gap,
    /// The value, unless it tells objects apart.
    pub(super) usual: Option<&'a [u8]>,
    /// The value is one that the index has.
    pub(super) is_indexed: bool,
}

/// A field of the index does not stand where a value does.
struct Misplaced;

/// Where values stand in an object.
struct Holes<'a> {
    bytes: &'a [u8],
    index: &'a Index,
    values: Vec<Value>,
    type_members: usize,
}

impl<'a> Sketch<'a> {
    /// `None` when the object is not one to learn from: it is not compact JSON throughout, or a field of the index stands
    /// where no value does.
    pub(super) fn new(bytes: &'a [u8], index: &'a Index, type_members: &'a [u8]) -> Option<Self> {
        let values = outline(bytes, index.start as usize, index.end as usize, &index.cuts)?;
        let mut start = index.start as usize;
        let pieces = values
            .iter()
            .map(|value| {
                let source = &bytes[start..value.start];
                let kept = kept(bytes, index, start..value.start);
                start = value.end;
                let usual = value.gap.is_hole().then(|| &bytes[value.start..value.end]);
                Piece { source, kept, gap: value.gap, usual, is_indexed: false }
            })
            .collect();
        let holes = Holes { bytes, index, values, type_members: type_members.len() };
        let (fields, keys) = (holes.fields().ok()?, holes.keys());
        Some(Self { pieces, type_members, fields, keys }.marked())
    }

    /// Notes which values are in the index, and which of them tell objects apart.
    fn marked(mut self) -> Self {
        let fields = &self.fields;
        let owners =
            fields.owners.iter().flat_map(|owner| [owner.api_version, owner.kind, owner.name, owner.uid]);
        let labels = fields.labels.iter().map(|&(_, hole)| Some(hole));
        let finalizers = fields.finalizers.iter().copied().map(Some);
        let indexed: Vec<HoleId> = owners.chain(labels).chain(finalizers).flatten().collect();
        let anchors: Vec<HoleId> = fields.texts.into_iter().flatten().collect();
        let holes = self.pieces.iter_mut().filter(|piece| piece.gap.is_hole());
        for (piece, hole) in holes.zip(0..) {
            let is_anchor = anchors.contains(&hole);
            piece.is_indexed = is_anchor || indexed.contains(&hole);
            piece.usual = piece.usual.filter(|_| !is_anchor);
        }
        self
    }

    /// The fields of the shape whose text has these holes.
    pub(super) fn fields(&self, holes: &[Hole]) -> Fields {
        let start = |place: Place| {
            let before = usize::from(place.holes).checked_sub(1).and_then(|before| holes.get(before));
            before.map_or(0, |hole| hole.usual_end) + place.offset
        };
        let keys =
            self.keys.iter().map(|&(place, length)| Text { offset: start(place), length, unescaped: false });
        let labels = keys.zip(self.fields.labels.iter().map(|&(_, hole)| hole)).collect();
        Fields { labels, ..self.fields.clone() }
    }
}

/// The bytes of a range that are not cut out.
fn kept(bytes: &[u8], index: &Index, range: std::ops::Range<usize>) -> Vec<u8> {
    let is_cut = |at: usize| index.cuts.iter().any(|&(from, to)| (from as usize..to as usize).contains(&at));
    range.filter(|&at| !is_cut(at)).map(|at| bytes[at]).collect()
}

impl Holes<'_> {
    /// The hole in which a text stands, if there is a text.
    fn hole(&self, text: Option<Text>) -> Result<Option<HoleId>, Misplaced> {
        let Some(text) = text else { return Ok(None) };
        let mut holes = self.values.iter().filter(|value| value.gap.is_hole());
        let hole = holes.position(|value| value.start == text.offset as usize).ok_or(Misplaced)?;
        HoleId::try_from(hole).map(Some).map_err(|_| Misplaced)
    }

    fn fields(&self) -> Result<Fields, Misplaced> {
        let index = self.index;
        let given = |text: Text| self.hole(Some(text))?.ok_or(Misplaced);
        let labels = index.labels.iter().map(|&(key, value)| Ok((key, given(value)?)));
        let annotations =
            index.annotations.map(|text| (self.place(text.offset), self.place(text.offset + text.length)));
        let mut texts = [None; FIELDS.len()];
        for (hole, &text) in texts.iter_mut().zip(&index.texts) {
            *hole = self.hole(text)?;
        }
        Ok(Fields {
            texts,
            generation: self.hole(index.generation_at)?,
            labels: labels.collect::<Result<_, _>>()?,
            owners: index.owners.iter().map(|owner| self.owner(owner)).collect::<Result<_, _>>()?,
            finalizers: index.finalizers.iter().map(|&text| given(text)).collect::<Result<_, _>>()?,
            annotations,
        })
    }

    fn owner(&self, owner: &Owner) -> Result<OwnerHoles, Misplaced> {
        let given = |text: Text| Some(text).filter(|text| *text != Text::default());
        Ok(OwnerHoles {
            api_version: self.hole(given(owner.api_version))?,
            kind: self.hole(given(owner.kind))?,
            name: self.hole(given(owner.name))?,
            uid: self.hole(given(owner.uid))?,
            controller: self.hole(owner.controller_at)?,
            block_owner_deletion: self.hole(owner.block_owner_deletion_at)?,
        })
    }

    /// Where the keys of the labels lie.
    fn keys(&self) -> Vec<(Place, u32)> {
        self.index.labels.iter().map(|&(key, _)| (self.place(key.offset), key.length)).collect()
    }

    /// Where an offset in the source comes to lie.
    fn place(&self, offset: u32) -> Place {
        let before = self.values.iter().filter(|value| value.gap.is_hole() && value.end <= offset as usize);
        let (holes, start) =
            before.fold((0, self.index.start as usize), |(count, _), value| (count + 1, value.end));
        let inserted = if holes == 0 { self.type_members } else { 0 };
        let kept = kept(self.bytes, self.index, start..offset as usize).len() + inserted;
        Place { holes, offset: kept as u32 }
    }
}
