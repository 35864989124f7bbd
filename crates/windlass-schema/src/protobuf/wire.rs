//! The wire format of protobuf: fields with a number and a payload.

use super::{DecodeError, Result};

/// The wire types of fields that Kubernetes uses.
#[derive(Clone, Copy)]
pub(super) enum WireType {
    Varint = 0,
    Fixed64 = 1,
    Bytes = 2,
}

/// A field of a message.
pub(super) struct Field<'b> {
    pub(super) number: u32,
    pub(super) payload: Payload<'b>,
}

/// The payload of a field, by wire type.
#[derive(Clone, Copy, Debug)]
pub(super) enum Payload<'b> {
    Varint(u64),
    Fixed64(u64),
    /// Skipped: no field of Kubernetes has this type.
    Fixed32,
    Bytes(&'b [u8]),
}

impl<'b> Field<'b> {
    pub(super) fn varint(&self) -> Result<u64> {
        match self.payload {
            Payload::Varint(value) => Ok(value),
            Payload::Bytes([]) => Ok(0),
            _ => Err(self.wrong_type()),
        }
    }

    pub(super) fn fixed64(&self) -> Result<u64> {
        match self.payload {
            Payload::Fixed64(value) => Ok(value),
            _ => Err(self.wrong_type()),
        }
    }

    pub(super) fn bytes(&self) -> Result<&'b [u8]> {
        match self.payload {
            Payload::Bytes(bytes) => Ok(bytes),
            _ => Err(self.wrong_type()),
        }
    }

    pub(super) fn text(&self) -> Result<&'b str> {
        std::str::from_utf8(self.bytes()?)
            .map_err(|_| DecodeError::new(format!("proto: field {} contains invalid UTF-8", self.number)))
    }

    fn wrong_type(&self) -> DecodeError {
        let wire_type = match self.payload {
            Payload::Varint(_) => 0,
            Payload::Fixed64(_) => 1,
            Payload::Bytes(_) => 2,
            Payload::Fixed32 => 5,
        };
        DecodeError::new(format!("proto: wrong wireType = {wire_type} for field {}", self.number))
    }
}

/// An iterator over the fields of a message. The iterator ends after the first error.
pub(super) struct Fields<'b> {
    rest: &'b [u8],
}

impl<'b> Fields<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self { rest: bytes }
    }

    fn read(&mut self) -> Result<Field<'b>> {
        let key = varint(&mut self.rest)?;
        let number = u32::try_from(key >> 3).ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| DecodeError::new(format!("proto: illegal tag {}", key >> 3)))?;
        let payload = match key & 7 {
            0 => Payload::Varint(varint(&mut self.rest)?),
            1 => Payload::Fixed64(u64::from_le_bytes(fixed(&mut self.rest)?)),
            2 => {
                let length = usize::try_from(varint(&mut self.rest)?).map_err(|_| end())?;
                let (bytes, rest) = self.rest.split_at_checked(length).ok_or_else(end)?;
                self.rest = rest;
                Payload::Bytes(bytes)
            }
            5 => {
                fixed::<4>(&mut self.rest)?;
                Payload::Fixed32
            }
            other => return Err(DecodeError::new(format!("proto: illegal wireType {other}"))),
        };
        Ok(Field { number, payload })
    }
}

impl<'b> Iterator for Fields<'b> {
    type Item = Result<Field<'b>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.read();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Returns the numbers of a packed field.
pub(super) fn packed(bytes: &[u8], is_fixed: bool) -> impl Iterator<Item = Result<Payload<'static>>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let payload = if is_fixed {
            fixed(&mut rest).map(|bytes| Payload::Fixed64(u64::from_le_bytes(bytes)))
        } else {
            varint(&mut rest).map(Payload::Varint)
        };
        if payload.is_err() {
            rest = &[];
        }
        Some(payload)
    })
}

fn varint(rest: &mut &[u8]) -> Result<u64> {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or_else(end)?;
        *rest = after;
        if shift < 64 {
            value |= u64::from(byte & 0x7f) << shift;
        }
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(DecodeError::new("proto: integer overflow"))
}

/// Returns the number of bytes that a varint takes.
pub(super) fn varint_size(value: usize) -> usize {
    let bits = (usize::BITS - (value | 1).leading_zeros()) as usize;
    bits.div_ceil(7)
}

/// Appends a varint.
pub(super) fn push_varint(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the key and the length of a field with `length` bytes.
pub(super) fn push_head(out: &mut Vec<u8>, number: u32, length: usize) {
    push_varint(out, (number << 3 | WireType::Bytes as u32) as usize);
    push_varint(out, length);
}

fn fixed<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N]> {
    let (bytes, after) = rest.split_first_chunk::<N>().ok_or_else(end)?;
    *rest = after;
    Ok(*bytes)
}

fn end() -> DecodeError {
    DecodeError::new("unexpected EOF")
}
