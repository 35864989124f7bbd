//! The path to a place in JSON.

use std::fmt::{self, Write};

/// A step from a value to a value in it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Index(usize),
    Member(String),
}

/// The way from the root to a value: `spec.containers[0].image`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Path(Vec<Segment>);

/// The maximum length of a printed path, in bytes.
const MAX_PRINTED: usize = 256;

impl Path {
    /// Returns the path of the innermost value of valid JSON that has the byte at `offset`.
    pub(super) fn to_byte(json: &[u8], offset: usize) -> Self {
        let mut path = Vec::new();
        // For each open container: whether the container is an object that expects a key next.
        let mut expects_key: Vec<Option<bool>> = Vec::new();
        let mut at = 0;
        while let Some(byte) = json.get(at).filter(|_| at <= offset) {
            match byte {
                b'"' => {
                    let end = end_of_string(json, at);
                    if let Some(Some(expects @ true)) = expects_key.last_mut() {
                        *expects = false;
                        path.pop();
                        path.push(Segment::Member(text(&json[at..end])));
                    }
                    at = end;
                    continue;
                }
                b'{' if at < offset => {
                    expects_key.push(Some(true));
                    path.push(Segment::Member(String::new()));
                }
                b'[' if at < offset => {
                    expects_key.push(None);
                    path.push(Segment::Index(0));
                }
                b',' => match (path.last_mut(), expects_key.last_mut()) {
                    (Some(Segment::Index(index)), _) => *index += 1,
                    (_, Some(Some(expects))) => *expects = true,
                    _ => {}
                },
                b'}' | b']' => {
                    expects_key.pop();
                    path.pop();
                }
                _ => {}
            }
            at += 1;
        }
        Self(path)
    }

    /// Returns the value at this path.
    pub(super) fn value_in<'a>(&self, root: &'a serde_json::Value) -> Option<&'a serde_json::Value> {
        self.0.iter().try_fold(root, |value, segment| match segment {
            Segment::Index(index) => value.get(*index),
            Segment::Member(key) => value.get(key),
        })
    }

    pub(super) fn is_root(&self) -> bool {
        self.0.is_empty()
    }
}

/// Keys with unusual characters are quoted. A long path is cut.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        for segment in &self.0 {
            match segment {
                Segment::Index(index) => write!(text, "[{index}]")?,
                Segment::Member(key) if is_plain(key) => {
                    write!(text, "{}{key}", if text.is_empty() { "" } else { "." })?;
                }
                Segment::Member(key) => write!(text, "[{key:?}]")?,
            }
            if text.len() > MAX_PRINTED {
                text.truncate(text.floor_char_boundary(MAX_PRINTED));
                text.push('…');
                break;
            }
        }
        f.write_str(&text)
    }
}

fn is_plain(key: &str) -> bool {
    !key.is_empty()
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'$'))
}

/// Returns the offset behind the string that begins at `start`.
fn end_of_string(json: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}

/// Returns the text of a JSON string.
fn text(quoted: &[u8]) -> String {
    serde_json::from_slice(quoted).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_belongs_to_the_innermost_value() {
        let json = br#"{"a": [1, {"b\"c": "d,{"}, [] ], "e": {"f": true}, "": 2}"#;
        let path = |part: &str, further: usize| {
            let text = std::str::from_utf8(json).expect("text");
            Path::to_byte(json, text.find(part).expect("a part") + further).to_string()
        };
        assert_eq!(path("{", 0), "");
        assert_eq!(path("[1", 0), "a");
        assert_eq!(path("1", 0), "a[0]");
        assert_eq!(path(r#"{"b"#, 0), "a[1]");
        assert_eq!(path("d,{", 2), r#"a[1]["b\"c"]"#);
        assert_eq!(path("}, []", 0), "a[1]");
        assert_eq!(path("[]", 0), "a[2]");
        assert_eq!(path("[]", 1), "a[2]");
        assert_eq!(path("], \"e", 0), "a");
        assert_eq!(path("true", 3), "e.f");
        assert_eq!(path("2}", 0), r#"[""]"#);
        assert_eq!(path("2}", 1), "");
    }

    #[test]
    fn a_long_path_is_cut() {
        let json = format!(r#"{{"{}": 1}}"#, "ä".repeat(MAX_PRINTED));
        let path = Path::to_byte(json.as_bytes(), json.len() - 2).to_string();
        assert!(path.len() < MAX_PRINTED + 8 && path.ends_with('…'), "{path}");
    }
}
