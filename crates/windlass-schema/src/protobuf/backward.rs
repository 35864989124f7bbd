//! A buffer that is written from the end to the start. The length of a message precedes the message, and is known once
//! the message is written.

use super::wire::WireType;

/// Bytes that grow at the start. The memory is kept for the next message.
#[derive(Default)]
pub(super) struct Backward {
    memory: Vec<u8>,
    /// Where the written bytes start.
    start: usize,
}

impl Backward {
    pub(super) fn clear(&mut self) {
        self.start = self.memory.len();
    }

    /// Returns the number of written bytes.
    pub(super) fn len(&self) -> usize {
        self.memory.len() - self.start
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.memory[self.start..]
    }

    /// Writes bytes before all others.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.room(bytes.len()).copy_from_slice(bytes);
    }

    pub(super) fn varint(&mut self, mut value: u64) {
        if value < 0x80 {
            self.room(1)[0] = value as u8;
            return;
        }
        let mut buffer = [0; 10];
        let mut length = 0;
        while value >= 0x80 {
            buffer[length] = value as u8 | 0x80;
            value >>= 7;
            length += 1;
        }
        buffer[length] = value as u8;
        self.bytes(&buffer[..=length]);
    }

    /// Writes the key of a field. The value of the field is written already.
    pub(super) fn key(&mut self, number: u32, wire_type: WireType) {
        self.varint(u64::from(number << 3 | wire_type as u32));
    }

    /// Writes the key and the length of a field. The value is all that was written after the buffer had the length
    /// `end`.
    pub(super) fn head(&mut self, number: u32, end: usize) {
        self.varint((self.len() - end) as u64);
        self.key(number, WireType::Bytes);
    }

    /// Writes a field with bytes.
    pub(super) fn field(&mut self, number: u32, bytes: &[u8]) {
        let end = self.len();
        self.bytes(bytes);
        self.head(number, end);
    }

    fn room(&mut self, length: usize) -> &mut [u8] {
        if length > self.start {
            self.grow(length);
        }
        self.start -= length;
        &mut self.memory[self.start..self.start + length]
    }

    #[cold]
    fn grow(&mut self, more: usize) {
        const SMALLEST: usize = 1024;
        let used = self.len();
        let size = (2 * self.memory.len()).max(used + more).max(SMALLEST);
        let mut memory = vec![0; size];
        memory[size - used..].copy_from_slice(self.as_slice());
        self.memory = memory;
        self.start = size - used;
    }
}
