//! The events of a watch on the wire: lines of JSON, or messages of protobuf with their lengths.

use bytes::Bytes;
use windlass_schema::{Catalog, ProtobufEncoder};

use super::reply::SHARED;
use crate::wire::{ApiError, Format};

/// Events in the order of sending.
pub(super) struct Events {
    /// The bytes before `out`.
    frames: Vec<Bytes>,
    out: Vec<u8>,
    /// `None` for JSON.
    encoder: Option<ProtobufEncoder>,
}

impl Events {
    /// Creates an empty sequence with `room` bytes.
    pub(super) fn with_room(format: Format, room: usize) -> Self {
        let encoder = (format == Format::Protobuf).then(|| ProtobufEncoder::new(Catalog::builtin()));
        Self { frames: Vec::new(), out: Vec::with_capacity(room), encoder }
    }

    /// Appends an event. The JSON of the object comes in two parts.
    ///
    /// # Errors
    /// 500 if the object has no encoding in protobuf.
    pub(super) fn push(&mut self, change: &str, object: [&[u8]; 2]) -> Result<(), ApiError> {
        let Some(encoder) = &mut self.encoder else {
            self.push_json(change, object);
            return Ok(());
        };
        let event = match object {
            [object, []] => encoder.event(change, object),
            parts => encoder.event(change, &parts.concat()),
        };
        self.out.extend_from_slice(event.map_err(ApiError::internal)?);
        Ok(())
    }

    /// Works like [`push`](Self::push). The event shares the two parts with `json`: large objects are not copied.
    ///
    /// # Errors
    /// 500 if the object has no encoding in protobuf.
    pub(super) fn share(&mut self, change: &str, object: [&[u8]; 2], json: &Bytes) -> Result<(), ApiError> {
        if self.encoder.is_some() || json.len() < SHARED {
            return self.push(change, object);
        }
        self.push_start(change);
        self.frames.push(std::mem::take(&mut self.out).into());
        let parts = object.into_iter().filter(|part| !part.is_empty());
        self.frames.extend(parts.map(|part| json.slice_ref(part)));
        self.push_end();
        Ok(())
    }

    fn push_json(&mut self, change: &str, object: [&[u8]; 2]) {
        self.push_start(change);
        object.iter().for_each(|part| self.out.extend_from_slice(part));
        self.push_end();
    }

    fn push_start(&mut self, change: &str) {
        self.out.extend_from_slice(b"{\"type\":\"");
        self.out.extend_from_slice(change.as_bytes());
        self.out.extend_from_slice(b"\",\"object\":");
    }

    fn push_end(&mut self) {
        self.out.extend_from_slice(b"}\n");
    }

    /// Returns the bytes of events that were not shared.
    pub(super) fn into_bytes(self) -> Bytes {
        debug_assert!(self.frames.is_empty(), "shared events have several frames");
        self.out.into()
    }

    /// Returns the bytes in frames.
    pub(super) fn into_frames(mut self) -> Vec<Bytes> {
        self.frames.push(self.out.into());
        self.frames
    }
}

/// Returns the event that ends a watch with an error.
pub(super) fn error_event(format: Format, error: &ApiError) -> Bytes {
    let mut events = Events::with_room(format, 0);
    let pushed = events.push("ERROR", [&error.status().to_json(), &[]]);
    debug_assert!(pushed.is_ok(), "a status has an encoding");
    events.into_bytes()
}
