//! JSON pointers (RFC 6901) with kube-apiserver's rules.

use std::borrow::Cow;

/// A path in a document: the keys below the root. The text before the first `/` is ignored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointer<'a> {
    /// The keys, separated by `/`.
    keys: &'a str,
}

impl<'a> Pointer<'a> {
    /// Returns `None` for a text without `/`. Such a text names no place in a document.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        text.split_once('/').map(|(_, keys)| Self { keys })
    }

    /// Returns the keys of the containers, and the last key.
    pub(super) fn split(self) -> (impl Iterator<Item = Cow<'a, str>>, Cow<'a, str>) {
        let (parents, last) = match self.keys.rsplit_once('/') {
            Some((parents, last)) => (Some(parents), last),
            None => (None, self.keys),
        };
        let parents = parents.into_iter().flat_map(|parents| parents.split('/')).map(unescape);
        (parents, unescape(last))
    }

    /// Returns the number of keys, that is, of containers around the place.
    pub(super) fn depth(self) -> usize {
        self.keys.bytes().filter(|byte| *byte == b'/').count() + 1
    }
}

/// Decodes `~1` to `/` and `~0` to `~`.
fn unescape(key: &str) -> Cow<'_, str> {
    if !key.contains('~') {
        return Cow::Borrowed(key);
    }
    let mut out = String::with_capacity(key.len());
    let mut rest = key;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        let (character, length) = match rest.as_bytes().get(at + 1) {
            Some(b'1') => ('/', 2),
            Some(b'0') => ('~', 2),
            _ => ('~', 1),
        };
        out.push(character);
        rest = &rest[at + length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}
