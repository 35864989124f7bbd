//! Lists in pieces: a client that does not read keeps a piece in memory, and not the list.

use std::collections::VecDeque;
use std::sync::Arc;
use std::vec;

use bytes::Bytes;

use crate::reply_memory::{ReplyMemory, Room};
use crate::store::Stored;

/// The size of the pieces, in bytes, that a list is sent in.
pub(super) const PIECE: usize = 256 << 10;
/// The size of the pieces while the clients of the server leave much unread.
const SMALL_PIECE: usize = 32 << 10;
/// The number of pieces of an item that does not fit into a piece, if the pieces would be smaller otherwise.
const MOST_CUTS: usize = 16;

/// Writes the items of a list.
pub(super) trait WriteItem: Send + 'static {
    /// Appends an item.
    fn write(&mut self, item: &Stored, out: &mut Vec<u8>);

    /// Appends the start of an item, and returns the rest, which the reply shares with the store. Appends nothing and returns nothing for an
    /// item that [`write`](Self::write) must write.
    fn share(&mut self, _item: &Stored, _out: &mut Vec<u8>) -> Vec<Bytes> {
        Vec::new()
    }
}

impl<F: FnMut(&Stored, &mut Vec<u8>) + Send + 'static> WriteItem for F {
    fn write(&mut self, item: &Stored, out: &mut Vec<u8>) {
        self(item, out);
    }
}

/// The bytes of a list around the items.
pub(super) struct ListText {
    pub(super) head: Vec<u8>,
    pub(super) separator: &'static [u8],
    pub(super) end: Vec<u8>,
}

/// A list that is serialised while the list is sent.
pub(super) struct Pieces<W> {
    text: ListText,
    writer: W,
    items: vec::IntoIter<Arc<Stored>>,
    memory: ReplyMemory,
    /// An item that did not fit into a piece, and the number of the item's bytes that were sent. The separator in front of the item was sent.
    begun: Option<(Arc<Stored>, usize)>,
    /// Pieces to send before any other.
    ready: VecDeque<Bytes>,
    is_first: bool,
    is_done: bool,
}

impl<W: WriteItem> Pieces<W> {
    pub(super) fn new(text: ListText, writer: W, items: Vec<Arc<Stored>>, memory: ReplyMemory) -> Self {
        Self {
            text,
            writer,
            items: items.into_iter(),
            memory,
            begun: None,
            ready: VecDeque::new(),
            is_first: true,
            is_done: false,
        }
    }

    /// Makes at least one piece.
    fn fill(&mut self) {
        let room = self.memory.reserve(PIECE);
        let size = if room.is_some() { PIECE } else { SMALL_PIECE };
        let mut piece = Unfinished { out: std::mem::take(&mut self.text.head), room };
        piece.out.reserve(size + size / 16);
        while piece.out.len() < size && !self.is_done {
            let Some((item, sent)) = self.next_item(&mut piece.out) else {
                piece.out.append(&mut self.text.end);
                self.is_done = true;
                continue;
            };
            let shared = self.writer.share(&item, &mut piece.out);
            if !shared.is_empty() {
                self.ready.push_back(piece.finish());
                self.ready.extend(shared);
                return;
            }
            let start = piece.out.len();
            self.writer.write(&item, &mut piece.out);
            let whole = piece.out.len() - start;
            piece.out.drain(start..start + sent.min(whole));
            // A cut item is written again for each piece: a few large pieces cost less than many small pieces.
            if let Some(length) = piece.cut(size.max(start + whole / MOST_CUTS)) {
                self.begun = Some((item, sent + length - start));
            }
        }
        self.ready.push_back(piece.finish());
    }

    /// Returns the next item, and the number of the item's bytes that were sent. Writes the separator in front of a new item.
    fn next_item(&mut self, out: &mut Vec<u8>) -> Option<(Arc<Stored>, usize)> {
        if let Some(begun) = self.begun.take() {
            return Some(begun);
        }
        let item = self.items.next()?;
        if !std::mem::take(&mut self.is_first) {
            out.extend_from_slice(self.text.separator);
        }
        Some((item, 0))
    }
}

impl<W: WriteItem> Iterator for Pieces<W> {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.ready.is_empty() && !self.is_done {
            self.fill();
        }
        self.ready.pop_front()
    }
}

/// A piece that is being written.
struct Unfinished {
    out: Vec<u8>,
    /// `None` for a small piece.
    room: Option<Room>,
}

impl Unfinished {
    /// Cuts a piece that is much larger than `size` unless there is memory for the piece. Returns the length after the cut.
    fn cut(&mut self, size: usize) -> Option<usize> {
        let excess = self.out.len().saturating_sub(size);
        if excess <= size / 8 || self.room.as_mut().is_some_and(|room| room.grow(excess)) {
            return None;
        }
        self.out.truncate(size);
        // Otherwise the piece keeps the memory of the whole item.
        self.out.shrink_to_fit();
        Some(size)
    }

    fn finish(mut self) -> Bytes {
        if self.out.len() < self.out.capacity() / 2 {
            self.out.shrink_to_fit();
        }
        match self.room {
            Some(room) => room.filled(self.out),
            None => self.out.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::store::{Draft, Labels, Layout, ObjectAttrs};

    const MIB: usize = 1 << 20;
    const SEPARATOR: &[u8] = b",\n    ";

    struct Whole;

    impl WriteItem for Whole {
        fn write(&mut self, item: &Stored, out: &mut Vec<u8>) {
            out.extend_from_slice(item.json());
        }
    }

    /// Shares objects of more than 1,000 bytes.
    struct Sharing;

    impl WriteItem for Sharing {
        fn write(&mut self, item: &Stored, out: &mut Vec<u8>) {
            out.extend_from_slice(item.json());
        }

        fn share(&mut self, item: &Stored, out: &mut Vec<u8>) -> Vec<Bytes> {
            if item.json().len() <= 1_000 {
                return Vec::new();
            }
            out.push(item.json()[0]);
            vec![item.json().slice(1..)]
        }
    }

    fn items(sizes: &[usize]) -> Vec<Arc<Stored>> {
        let layout = Layout { api_version: "v1".into(), schema: 0 };
        let of = |size: &usize| {
            let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "data": "x".repeat(*size)});
            let attrs = ObjectAttrs::default();
            Arc::new(Draft::unversioned(&object, layout.clone(), attrs, &Labels::default()))
        };
        sizes.iter().map(of).collect()
    }

    fn pieces<W: WriteItem>(writer: W, items: &[Arc<Stored>], memory: &ReplyMemory) -> Pieces<W> {
        let text = ListText { head: b"[".to_vec(), separator: SEPARATOR, end: b"]".to_vec() };
        Pieces::new(text, writer, items.to_vec(), memory.clone())
    }

    fn expected(items: &[Arc<Stored>]) -> Vec<u8> {
        let items: Vec<&[u8]> = items.iter().map(|item| &item.json()[..]).collect();
        [b"[", items.join(SEPARATOR).as_slice(), b"]"].concat()
    }

    #[test]
    fn pieces_are_the_list() {
        let memory = ReplyMemory::default();
        for sizes in [vec![], vec![10], vec![10; 3_000], vec![MIB, 10, PIECE, 10, MIB], vec![PIECE; 40]] {
            let items = items(&sizes);
            assert_eq!(pieces(Whole, &items, &memory).collect::<Vec<_>>().concat(), expected(&items));
            assert_eq!(pieces(Sharing, &items, &memory).collect::<Vec<_>>().concat(), expected(&items));
        }
    }

    #[test]
    fn lists_that_no_client_reads_share_a_limit_and_stay_whole() {
        let items = items(&[MIB, 10, MIB, 100, SMALL_PIECE, MIB]);
        let memory = ReplyMemory::default();
        let mut lists: Vec<_> = (0..200).map(|_| pieces(Whole, &items, &memory)).collect();
        let mut begun: Vec<Vec<Bytes>> =
            lists.iter_mut().map(|list| list.by_ref().take(2).collect()).collect();
        let unread: usize = begun.iter().flatten().map(Bytes::len).sum();
        assert!(unread < 64 * MIB, "{} MiB", unread / MIB);
        for (list, begun) in lists.into_iter().zip(&mut begun) {
            begun.extend(list);
            assert_eq!(begun.concat(), expected(&items));
            begun.clear();
        }
        assert!(memory.reserve(30 * MIB).is_some(), "the memory of sent pieces is free");
    }

    #[test]
    fn an_item_that_begins_at_the_end_of_a_piece_is_whole() {
        let memory = ReplyMemory::default();
        let _others =
            std::iter::repeat_with(|| memory.reserve(MIB)).map_while(|room| room).collect::<Vec<_>>();
        for size in SMALL_PIECE - 80..SMALL_PIECE + 2 {
            let items = items(&[size, SMALL_PIECE, 10, 3 * MIB]);
            let pieces: Vec<Bytes> = pieces(Whole, &items, &memory).collect();
            assert!(pieces.concat() == expected(&items), "{size}");
            assert!(pieces.len() < 26, "{} pieces", pieces.len());
        }
    }

    #[test]
    fn a_short_list_takes_little_memory() {
        let (memory, items) = (ReplyMemory::default(), items(&[10]));
        let lists: Vec<Vec<Bytes>> = (0..1_000).map(|_| pieces(Whole, &items, &memory).collect()).collect();
        assert!(memory.reserve(30 * MIB).is_some());
        drop(lists);
    }

    #[test]
    fn shared_objects_take_no_memory_of_replies() {
        let items = items(&[MIB; 30]);
        let memory = ReplyMemory::default();
        let lists: Vec<Vec<Bytes>> = (0..10).map(|_| pieces(Sharing, &items, &memory).collect()).collect();
        let of_item = |item: &Arc<Stored>| item.json().slice(1..).as_ptr();
        for list in lists {
            let shared = list.iter().filter(|piece| piece.len() > MIB / 2);
            assert!(shared.map(|piece| piece.as_ptr()).eq(items.iter().map(of_item)));
        }
    }
}
