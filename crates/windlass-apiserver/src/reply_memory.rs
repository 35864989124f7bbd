//! The memory of replies that no client has read yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Limits the memory of the large pieces of all replies that are made and not yet sent. Beyond the limit, replies are made in small
/// pieces: a reply never waits for the clients of other replies.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReplyMemory(Arc<AtomicUsize>);

impl ReplyMemory {
    /// The limit of all large pieces together, in bytes.
    const LIMIT: usize = 32 << 20;

    /// Reserves memory for a piece. Returns `None` if the pieces together would be too large.
    pub(crate) fn reserve(&self, bytes: usize) -> Option<Room> {
        let room = Room { memory: self.clone(), bytes };
        let others = self.0.fetch_add(bytes, Ordering::Relaxed);
        // A refused room is dropped, and gives the bytes back.
        (others + bytes <= Self::LIMIT).then_some(room)
    }
}

/// Reserved memory. Dropping the room gives the memory back.
#[derive(Debug)]
pub(crate) struct Room {
    memory: ReplyMemory,
    bytes: usize,
}

impl Room {
    /// Returns a piece of a reply that keeps the room until the piece is sent. Gives back the memory that the piece does not take.
    pub(crate) fn filled(mut self, bytes: Vec<u8>) -> Bytes {
        let unused = self.bytes.saturating_sub(bytes.capacity());
        self.memory.0.fetch_sub(unused, Ordering::Relaxed);
        self.bytes -= unused;
        Bytes::from_owner(Piece { bytes, _room: self })
    }

    /// Reserves more bytes. Returns false if the pieces together would be too large.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let Some(mut more) = self.memory.reserve(bytes) else { return false };
        self.bytes += std::mem::take(&mut more.bytes);
        true
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.memory.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

struct Piece {
    bytes: Vec<u8>,
    _room: Room,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_share_a_limit_until_the_pieces_are_sent() {
        let memory = ReplyMemory::default();
        let room = memory.reserve(ReplyMemory::LIMIT).unwrap();
        assert!(memory.reserve(1).is_none());
        let piece = room.filled(vec![1, 2, 3]);
        let others = memory.reserve(ReplyMemory::LIMIT - 3).expect("the piece takes three bytes");
        let rest = piece.slice(1..);
        drop(piece);
        assert!(memory.reserve(1).is_none(), "a part of the piece is not sent");
        assert_eq!(&rest[..], [2, 3]);
        drop(rest);
        assert!(memory.reserve(3).is_some());
        drop(others);
    }

    #[test]
    fn a_room_grows_within_the_limit() {
        let memory = ReplyMemory::default();
        let mut room = memory.reserve(1).unwrap();
        assert!(room.grow(ReplyMemory::LIMIT - 1));
        assert!(!room.grow(1));
        drop(room);
        assert!(memory.reserve(ReplyMemory::LIMIT).is_some(), "every byte was given back");
    }
}
