//! Watch events.

use bytes::Bytes;
use memchr::{memchr, memrchr};

use super::{
    UnreadableObject,
    buffer::{Buffer, Location},
    key_in,
};
use crate::{
    scan::{ScanError, WatchEventType},
    scanner::{Scanned, Scanner},
};

/// Finds the events in the body of a watch.
///
/// Servers send one event per line. The framer accepts line breaks within an event where JSON allows them, but uses them to
/// resynchronise after a line that is not JSON.
#[derive(Debug)]
pub struct WatchFramer {
    buffer: Buffer,
    /// The end of the last line that ends in the current piece.
    lines: usize,
    /// After invalid JSON: bytes up to the next line break are skipped.
    lost: bool,
}

/// An event and the event's object.
#[derive(Debug)]
pub struct WatchEvent<'a> {
    /// The type of the event.
    pub event: WatchEventType,
    /// The object of the event.
    pub object: Scanned<'a>,
}

/// The beginning of each line that a server sends.
const LINE: &[u8] = b"{\"type\":";

impl WatchFramer {
    /// Creates a framer that rejects events longer than `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { buffer: Buffer::new(limit), lines: 0, lost: false }
    }

    /// Takes the next piece of the body. [`Self::next`] must have returned `None` for the previous piece.
    pub fn push(&mut self, piece: Bytes) {
        self.lines = memrchr(b'\n', &piece).map_or(0, |at| at + 1);
        self.buffer.push(piece);
    }

    /// Returns whether the body so far ends within an event.
    pub fn is_within_event(&self) -> bool {
        self.buffer.is_open()
    }

    /// Returns the next event, or `None` if the piece has no further complete event.
    pub fn next<'a>(
        &'a mut self,
        scanner: &'a mut Scanner,
    ) -> Option<Result<WatchEvent<'a>, UnreadableObject>> {
        let (event, location) = match self.find(scanner) {
            Some(Ok(found)) => found,
            Some(Err(bad)) => return Some(Err(bad)),
            None => {
                self.buffer.release();
                return None;
            }
        };
        let object = scanner.view(self.buffer.bytes(&location));
        Some(Ok(WatchEvent { event, object }))
    }

    fn find(
        &mut self,
        scanner: &mut Scanner,
    ) -> Option<Result<(WatchEventType, Location), UnreadableObject>> {
        if self.lost {
            self.skip_line()?;
        }
        if !self.buffer.is_open() {
            if self.buffer.peek()? != b'{' {
                self.lost = true;
                return Some(Err(UnreadableObject::new(ScanError::syntax(0, "an event"), None)));
            }
            let start = self.buffer.position();
            // An event whose line continues in the next piece is not scanned twice. An event of several lines takes the slow path, which
            // checks after each line whether the event is complete.
            let rest = self.buffer.rest();
            if (start < self.lines || rest.ends_with(b"}"))
                && let Ok((event, length)) = scanner.index_event(rest)
                && !scanner.has_controls()
            {
                self.buffer.advance(length);
                return Some(Ok((event, Location::Piece(start..start + length))));
            }
        }
        // The event continues in the next piece, or is invalid: find its end first.
        let location = match self.end()? {
            Ok(location) => location,
            Err(error) => return Some(Err(UnreadableObject::new(error, None))),
        };
        let bytes = self.buffer.bytes(&location);
        Some(match scanner.index_event(bytes) {
            Ok((event, _)) => Ok((event, location)),
            Err(error) => Err(UnreadableObject::new(error, key_in(bytes, Some("object")))),
        })
    }

    /// Advances to the end of an event, line by line.
    fn end(&mut self) -> Option<Result<Location, ScanError>> {
        loop {
            if let Some(line) = self.invalid_until() {
                self.buffer.restart(line);
                return Some(Err(ScanError::syntax(0, "an event that ends with its line")));
            }
            let rest = self.buffer.rest();
            if rest.is_empty() {
                return None;
            }
            let line = memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            let whole_line = rest[line - 1] == b'\n';
            match self.buffer.value_within(line) {
                Ok(None) => {}
                Ok(Some(location)) => return Some(Ok(location)),
                Err(error) => {
                    self.lost = !whole_line;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Returns the offset of a line in the carried bytes that proves the previous event invalid: the line
    /// begins inside a string, or with the first bytes of an event.
    fn invalid_until(&self) -> Option<usize> {
        if !self.buffer.is_open() {
            return None;
        }
        let (carried, rest) = (self.buffer.carried(), self.buffer.rest());
        let recent = carried.len().saturating_sub(LINE.len() + 1);
        let line = recent + carried[recent..].iter().rposition(|&byte| byte == b'\n')? + 1;
        let begun = &carried[line..];
        let in_string = begun.is_empty() && self.buffer.is_in_string();
        let rest = &rest[..rest.len().min(LINE.len() - begun.len())];
        let is_event = LINE.strip_prefix(begun).is_some_and(|missing| missing == rest);
        (in_string || is_event).then_some(line)
    }

    /// Skips to the next line.
    fn skip_line(&mut self) -> Option<()> {
        let rest = self.buffer.rest();
        let line = memchr(b'\n', rest);
        self.buffer.advance(line.map_or(rest.len(), |at| at + 1));
        self.lost = line.is_none();
        line.map(drop)
    }
}
