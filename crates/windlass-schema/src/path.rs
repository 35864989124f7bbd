//! Field paths in Kubernetes' notation.

use std::fmt;

/// A field path (`spec.containers[0].env[name]`): a linked list whose segments live on the stack.
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

impl From<Path<'_>> for String {
    fn from(path: Path<'_>) -> Self {
        path.to_string()
    }
}

impl From<&Path<'_>> for String {
    fn from(path: &Path<'_>) -> Self {
        path.to_string()
    }
}
