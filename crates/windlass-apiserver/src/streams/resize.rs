//! The sizes of a terminal from a client: a stream of JSON objects.

use serde::Deserialize;

use crate::nodes::TerminalSize;

/// The longest object. A longer object is dropped.
const MAX_OBJECT: usize = 1024;

/// Cuts a stream into sizes. The stream may come in pieces of any size.
#[derive(Debug, Default)]
pub struct Resizes(Vec<u8>);

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Size {
    #[serde(default)]
    width: u16,
    #[serde(default)]
    height: u16,
}

impl Resizes {
    /// Takes a piece of the stream, and returns the last size that is complete.
    pub fn push(&mut self, piece: &[u8]) -> Option<TerminalSize> {
        let mut last = None;
        for part in piece.split_inclusive(|byte| *byte == b'}') {
            self.0.extend_from_slice(part);
            if part.ends_with(b"}") {
                let object = std::mem::take(&mut self.0);
                let size: Option<Size> = serde_json::from_slice(&object).ok();
                last = size.map(|Size { width, height }| TerminalSize { width, height }).or(last);
            }
            if self.0.len() > MAX_OBJECT {
                self.0.clear();
            }
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_sizes_counts() {
        let mut sizes = Resizes::default();
        assert_eq!(sizes.push(br#"{"Width":80,"#), None);
        let size = sizes.push(b"\"Height\":24}\n{\"Width\":1,\"Height\":2}\n");
        assert_eq!(size, Some(TerminalSize { width: 1, height: 2 }));
        assert_eq!(sizes.push(b"no size }"), None);
        assert_eq!(sizes.push(&[b'{'; 10_000]), None);
        assert!(sizes.0.len() <= MAX_OBJECT);
    }
}
