//! Field paths in Kubernetes' notation.

use std::fmt::{self, Write};

/// A field path (`spec.containers[0].env[name]`): a linked list on the stack.
#[derive(Clone, Copy)]
pub(crate) enum Path<'p> {
    /// The start of the path; may be empty.
    Root(&'p str),
    /// A member with a fixed name.
    Child(&'p Path<'p>, &'p str),
    /// A member of a map.
    Key(&'p Path<'p>, &'p str),
    /// An element of a list.
    Index(&'p Path<'p>, usize),
}

impl<'p> Path<'p> {
    pub(crate) fn child(&'p self, name: &'p str) -> Path<'p> {
        Path::Child(self, name)
    }

    pub(crate) fn key(&'p self, name: &'p str) -> Path<'p> {
        Path::Key(self, name)
    }

    pub(crate) fn index(&'p self, index: usize) -> Path<'p> {
        Path::Index(self, index)
    }

    fn is_empty(&self) -> bool {
        matches!(self, Path::Root(""))
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Root(text) => f.write_str(text),
            Path::Child(parent, name) if parent.is_empty() => f.write_str(name),
            Path::Child(parent, name) => write!(f, "{parent}.{name}"),
            Path::Key(parent, name) => write!(f, "{parent}[{name}]"),
            Path::Index(parent, index) => write!(f, "{parent}[{index}]"),
        }
    }
}

/// The longest path in a message, in bytes. A path contains keys of maps, which may be megabytes long.
pub(crate) const MAX_LENGTH: usize = 4096;

/// A text that ends at [`MAX_LENGTH`].
struct Limited(String);

impl Write for Limited {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        push(&mut self.0, text);
        if self.0.len() < MAX_LENGTH { Ok(()) } else { Err(fmt::Error) }
    }
}

/// Appends a text to a path, up to [`MAX_LENGTH`].
pub(crate) fn push(path: &mut String, text: &str) {
    let end = text.floor_char_boundary(MAX_LENGTH.saturating_sub(path.len()));
    path.push_str(&text[..end]);
}

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        Self::from(&path)
    }
}

impl From<&Path<'_>> for String {
    /// Writes the path. The text ends at [`MAX_LENGTH`].
    fn from(path: &Path<'_>) -> Self {
        let mut text = Limited(String::new());
        _ = write!(text, "{path}");
        text.0
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_LENGTH, Path};

    #[test]
    fn long_paths_are_cut() {
        let key = "é".repeat(MAX_LENGTH);
        let (root, index) = (Path::Root("a"), 3);
        let path = root.key(&key);
        let text = String::from(path.index(index));
        assert!(text.starts_with("a[é") && text.len() <= MAX_LENGTH, "{}", text.len());
        assert_eq!(String::from(root.index(index)), "a[3]");
    }
}
