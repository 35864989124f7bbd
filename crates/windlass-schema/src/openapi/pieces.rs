//! A document in pieces: the document of thousands of kinds is never in one block of memory.

/// The size of a piece in bytes.
const PIECE: usize = 256 << 10;

/// The pieces of a document that is being written.
#[derive(Default)]
pub(super) struct Pieces {
    done: Vec<Vec<u8>>,
    last: Vec<u8>,
}

impl Pieces {
    /// Appends bytes. A piece is longer than [`PIECE`] only if `bytes` are.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        if self.last.len() + bytes.len() > self.last.capacity() {
            let next = Vec::with_capacity(PIECE.max(bytes.len()));
            self.done.push(std::mem::replace(&mut self.last, next));
        }
        self.last.extend_from_slice(bytes);
    }

    /// Returns the pieces. No piece is empty.
    pub(super) fn finish(mut self) -> Vec<Vec<u8>> {
        self.last.shrink_to_fit();
        self.done.push(self.last);
        self.done.retain(|piece| !piece.is_empty());
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_full_and_in_order() {
        let mut pieces = Pieces::default();
        let parts: Vec<Vec<u8>> = (0..2_000_u32)
            .map(|number| vec![number.to_le_bytes()[0]; number as usize])
            .chain([vec![7; PIECE + 1]])
            .collect();
        parts.iter().for_each(|part| pieces.add(part));
        let pieces = pieces.finish();
        assert_eq!(pieces.concat(), parts.concat());
        assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= PIECE + 1));
        assert!(pieces.iter().all(|piece| piece.capacity() <= PIECE + 1));
        assert!(pieces.len() <= parts.concat().len() / PIECE + 3);
    }

    #[test]
    fn an_empty_document_has_no_pieces() {
        assert!(Pieces::default().finish().is_empty());
    }
}
