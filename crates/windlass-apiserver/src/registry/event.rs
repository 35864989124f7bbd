//! The events of a watch on the wire: lines of JSON, or messages of protobuf with their lengths.

use bytes::Bytes;
use windlass_schema::{Catalog, ProtobufEncoder};

use crate::wire::{ApiError, Format};

/// Events in the order of sending.
pub(super) struct Events {
    out: Vec<u8>,
    /// `None` for JSON.
    encoder: Option<ProtobufEncoder>,
}

impl Events {
    /// Creates an empty sequence with `room` bytes.
    pub(super) fn with_room(format: Format, room: usize) -> Self {
        let encoder = (format == Format::Protobuf).then(|| ProtobufEncoder::new(Catalog::builtin()));
        Self { out: Vec::with_capacity(room), encoder }
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

    fn push_json(&mut self, change: &str, object: [&[u8]; 2]) {
        self.out.extend_from_slice(b"{\"type\":\"");
        self.out.extend_from_slice(change.as_bytes());
        self.out.extend_from_slice(b"\",\"object\":");
        object.iter().for_each(|part| self.out.extend_from_slice(part));
        self.out.extend_from_slice(b"}\n");
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.out.into()
    }
}

/// Returns the event that ends a watch with an error.
pub(super) fn error_event(format: Format, error: &ApiError) -> Bytes {
    let mut events = Events::with_room(format, 0);
    let pushed = events.push("ERROR", [&error.status().to_json(), &[]]);
    debug_assert!(pushed.is_ok(), "a status has an encoding");
    events.into_bytes()
}
