//! The shapes of a kind, as a tree along which an object is read.

use std::sync::Arc;

use super::{
    Hole, HoleId, Own, Shape,
    sketch::{Gap, Piece, Sketch},
};
use crate::scan::{
    cursor::Cursor,
    index::{Field, Index},
};

/// The shapes of a kind.
///
/// A node of the tree is a piece of text and the gap behind it; objects that begin alike share the nodes of what is alike.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    nodes: Vec<Node>,
    /// Where objects begin.
    roots: Vec<NodeId>,
    learned: usize,
    recognised: usize,
    memory: usize,
}

type NodeId = u32;

#[derive(Debug)]
struct Node {
    /// The text, as it stands in the source.
    source: Box<[u8]>,
    /// What of it is kept.
    kept: Box<[u8]>,
    gap: Gap,
    /// The gap's usual value. Values that tell objects apart have none.
    usual: Option<Box<[u8]>>,
    /// The value is one that the index has.
    is_indexed: bool,
    /// What comes behind.
    next: Vec<NodeId>,
    /// At the end of an object.
    shape: Option<Arc<Shape>>,
    /// How often the value was the usual one, and how often not, among the objects looked at closely.
    usual_times: u32,
    other_times: u32,
    /// What nearly always comes from here on.
    run: Option<Run>,
}

/// Text and usual values that nearly always come one after the other, to be compared at once.
#[derive(Debug)]
struct Run {
    text: Box<[u8]>,
    /// So many values are in it.
    holes: HoleId,
    /// The node that the run ends with, after its value.
    last: NodeId,
}

/// What was in a gap.
enum Passed {
    Usual,
    Own {
        start: u32,
        end: u32,
    },
    /// Nothing that is kept.
    Nothing,
    End,
}

/// A shape is smaller than the objects that have it, but a kind whose objects all look different has none.
const MAX_MEMORY: usize = 4 << 20;
/// Where more ways part, members are data: they are named after something.
const MAX_WAYS: usize = 32;
/// The values that an object keeps of its own are shorter than this, so that their places fit in 16 bits.
const MAX_OWN_LENGTH: usize = 56_000;
/// So many objects are looked at closely at the beginning, and one in so many later.
const CLOSELY: usize = 256;
/// So often a value was looked at closely before it is called steady.
const STEADY: u32 = 16;

impl Shapes {
    /// Returns the bytes of memory that the shapes take.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Reads the object at the cursor if it has a known shape; otherwise leaves the cursor where it is.
    pub(crate) fn recognise(&mut self, cursor: &mut Cursor<'_>, index: &mut Index) -> bool {
        if self.roots.is_empty() {
            return false;
        }
        let start = cursor.at;
        index.own.clear();
        // The first ones are looked at closely, and some later.
        let shape = if self.recognised < CLOSELY || self.recognised.is_multiple_of(CLOSELY) {
            self.walk_closely(cursor, &mut index.own)
        } else {
            self.walk(cursor, &mut index.own)
        };
        let fits_in = index.own.iter().map(|own| own.length()).sum::<usize>() <= MAX_OWN_LENGTH;
        if let Some(shape) = shape.filter(|shape| fits_in && shape.read(cursor.bytes, index)) {
            self.recognised += 1;
            (index.start, index.end) = (start as u32, cursor.at as u32);
            index.shape = Some(shape);
            return true;
        }
        cursor.at = start;
        false
    }

    fn walk(&self, cursor: &mut Cursor<'_>, own: &mut Vec<Own>) -> Option<Arc<Shape>> {
        let mut next = &self.roots;
        let mut hole = 0;
        loop {
            let rest = &cursor.bytes[cursor.at..];
            let mut nodes = next.iter().map(|&id| &self.nodes[id as usize]);
            let node = nodes.find(|node| node.fits(rest))?;
            if let Some(run) = &node.run
                && self.continues(run, rest)
            {
                cursor.at += run.text.len();
                hole += run.holes;
                next = &self.nodes[run.last as usize].next;
                continue;
            }
            match node.pass(cursor)? {
                Passed::End => return node.shape.clone(),
                Passed::Nothing => {}
                Passed::Usual => hole += 1,
                Passed::Own { start, end } => {
                    own.push(Own { hole, start, end });
                    hole += 1;
                }
            }
            next = &node.next;
        }
    }

    fn continues(&self, run: &Run, rest: &[u8]) -> bool {
        rest.starts_with(&run.text) && self.nodes[run.last as usize].ends(rest.get(run.text.len()))
    }

    /// The same, noting which values are the usual ones.
    fn walk_closely(&mut self, cursor: &mut Cursor<'_>, own: &mut Vec<Own>) -> Option<Arc<Shape>> {
        let mut path = Vec::new();
        let mut hole = 0;
        loop {
            let next = path.last().map_or(&self.roots, |&last: &NodeId| &self.nodes[last as usize].next);
            let rest = &cursor.bytes[cursor.at..];
            let id = next.iter().copied().find(|&id| self.nodes[id as usize].fits(rest))?;
            path.push(id);
            let node = &mut self.nodes[id as usize];
            match node.pass(cursor)? {
                Passed::Nothing => {}
                Passed::Own { start, end } => {
                    own.push(Own { hole, start, end });
                    hole += 1;
                    node.other_times += 1;
                }
                Passed::Usual => {
                    hole += 1;
                    node.usual_times += 1;
                }
                Passed::End => {
                    node.usual_times += 1;
                    break;
                }
            }
        }
        let end = &self.nodes[*path.last()? as usize];
        let shape = end.shape.clone();
        if end.usual_times.is_power_of_two() && end.usual_times >= STEADY {
            self.find_runs(&path);
        }
        shape
    }

    /// Finds the runs on the way of a shape that has been seen often.
    fn find_runs(&mut self, path: &[NodeId]) {
        let mut rest = path;
        while let Some(&first) = rest.first() {
            let is_inner = |id: NodeId| self.nodes[id as usize].next.len() == 1;
            let steady = rest.iter().take_while(|&&id| self.nodes[id as usize].is_steady()).count();
            // A run goes up to where ways part.
            let length =
                rest.iter().take(steady).position(|&id| !is_inner(id)).map_or(steady, |parting| parting + 1);
            let run = (length > 1).then(|| self.run(&rest[..length]));
            self.set_run(first, run.flatten());
            rest = &rest[length.max(1)..];
        }
    }

    fn set_run(&mut self, id: NodeId, run: Option<Run>) {
        let run_memory = |run: &Option<Run>| run.as_ref().map_or(0, |run| run.text.len());
        let node = &mut self.nodes[id as usize];
        self.memory = self.memory + run_memory(&run) - run_memory(&node.run);
        node.run = run;
    }

    fn run(&self, path: &[NodeId]) -> Option<Run> {
        let mut text = Vec::new();
        for node in path.iter().map(|&id| &self.nodes[id as usize]) {
            text.extend_from_slice(&node.source);
            text.extend_from_slice(node.usual.as_deref()?);
        }
        Some(Run { text: text.into(), holes: path.len() as HoleId, last: *path.last()? })
    }

    /// Learns the shape of an object that has been read token by token.
    pub(crate) fn learn(&mut self, bytes: &[u8], index: &Index, type_members: &[u8]) {
        // Where one object in four looks like none before, comparing is a waste.
        let promising = self.learned < 32 + self.recognised / 4;
        if !promising
            || self.memory > MAX_MEMORY
            || index.field(Field::Name).is_none()
            || !index.unescaped.is_empty()
        {
            return;
        }
        // What is not text is refused in the end; nobody is to be compared with it.
        if std::str::from_utf8(&bytes[index.start as usize..index.end as usize]).is_err() {
            return;
        }
        let type_members = if index.has_type { &[][..] } else { type_members };
        let Some(sketch) = Sketch::new(bytes, index, type_members) else { return };
        self.learned += 1;
        let Some(path) = self.insert(&sketch) else { return };
        let Some(&end) = path.last() else { return };
        if self.nodes[end as usize].shape.is_none() {
            let shape = self.shape(&path, &sketch);
            self.memory += shape.memory();
            self.nodes[end as usize].shape = Some(Arc::new(shape));
        }
    }

    /// Enters an object's way through the tree; `None` where too many part already.
    fn insert(&mut self, sketch: &Sketch<'_>) -> Option<Vec<NodeId>> {
        let mut path: Vec<NodeId> = Vec::with_capacity(sketch.pieces.len());
        for piece in &sketch.pieces {
            let next = path.last().map_or(&self.roots, |&last| &self.nodes[last as usize].next);
            let known = next.iter().copied().find(|&id| {
                let node = &self.nodes[id as usize];
                node.gap == piece.gap && *node.source == *piece.source
            });
            let id = match known {
                Some(id) => {
                    self.mark(id, piece);
                    id
                }
                None if next.len() < MAX_WAYS => self.add(path.last().copied(), piece),
                None => return None,
            };
            path.push(id);
        }
        Some(path)
    }

    /// What is no field of the index where a key is repeated may be one where it is not. Values that are kept although they
    /// are usual do no harm to the shapes that are there already.
    fn mark(&mut self, id: NodeId, piece: &Piece<'_>) {
        let node = &mut self.nodes[id as usize];
        node.is_indexed |= piece.is_indexed;
        if piece.usual.is_none()
            && let Some(usual) = node.usual.take()
        {
            self.memory -= usual.len();
            (0..self.nodes.len() as NodeId).for_each(|id| self.set_run(id, None));
        }
    }

    fn add(&mut self, before: Option<NodeId>, piece: &Piece<'_>) -> NodeId {
        let id = self.nodes.len() as NodeId;
        let usual = piece.usual.map_or(0, <[u8]>::len);
        self.memory +=
            piece.source.len() + piece.kept.len() + usual + size_of::<Node>() + size_of::<NodeId>();
        self.nodes.push(Node {
            source: piece.source.into(),
            kept: piece.kept.clone().into(),
            gap: piece.gap,
            usual: piece.usual.map(Into::into),
            is_indexed: piece.is_indexed,
            next: Vec::new(),
            shape: None,
            usual_times: 0,
            other_times: 0,
            run: None,
        });
        match before {
            Some(before) => self.nodes[before as usize].next.push(id),
            None => self.roots.push(id),
        }
        id
    }

    /// The shape of the objects that go this way.
    fn shape(&self, path: &[NodeId], sketch: &Sketch<'_>) -> Shape {
        let (mut text, mut holes) = (Vec::new(), Vec::new());
        for node in path.iter().map(|&id| &self.nodes[id as usize]) {
            let is_first = text.is_empty();
            text.extend_from_slice(&node.kept);
            if is_first {
                // Behind the opening bracket.
                text.splice(1..1, sketch.type_members.iter().copied());
            }
            if node.gap.is_hole() {
                let literal_end = text.len() as u32;
                text.extend_from_slice(node.usual.as_deref().unwrap_or_default());
                holes.push(Hole { literal_end, usual_end: text.len() as u32 });
            }
        }
        let fields = sketch.fields(&holes);
        Shape { text: text.into(), holes: holes.into(), fields }
    }
}

impl Node {
    /// Whether what comes next is this node's text and, where that leaves a doubt, a value for its gap.
    #[inline]
    fn fits(&self, rest: &[u8]) -> bool {
        rest.starts_with(&self.source)
            && (self.gap != Gap::Scalar
                || matches!(rest.get(self.source.len()), Some(b'-' | b'0'..=b'9' | b't' | b'f')))
    }

    /// Whether its value is nearly always the usual one.
    fn is_steady(&self) -> bool {
        self.usual.is_some() && self.usual_times >= STEADY && self.other_times < self.usual_times / 16
    }

    /// Moves past the text and what is in the gap.
    #[inline]
    fn pass(&self, cursor: &mut Cursor<'_>) -> Option<Passed> {
        cursor.at += self.source.len();
        let start = cursor.at;
        if let Some(usual) = &self.usual
            && cursor.bytes[start..].starts_with(usual)
            && self.ends(cursor.bytes.get(start + usual.len()))
        {
            cursor.at += usual.len();
            return Some(Passed::Usual);
        }
        match self.gap {
            Gap::End => return Some(Passed::End),
            Gap::Dropped => return cursor.skip_value().ok().map(|()| Passed::Nothing),
            // Fields of the index are read where they lie: they hold no escapes.
            Gap::Text if cursor.text().ok()?.escaped && self.is_indexed => return None,
            Gap::Text => {}
            Gap::Scalar => cursor.skip_value().ok()?,
        }
        Some(Passed::Own { start: start as u32, end: cursor.at as u32 })
    }

    /// Whether a value can end before this byte.
    #[inline]
    fn ends(&self, byte: Option<&u8>) -> bool {
        match self.gap {
            Gap::Text => byte == Some(&b'"'),
            _ => matches!(byte, Some(b',' | b'}' | b']')),
        }
    }
}
