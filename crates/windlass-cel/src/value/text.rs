//! Texts: borrowed, or shared.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A text.
#[derive(Clone)]
pub enum Text<'a> {
    /// A part of the input or of the program.
    Borrowed(&'a str),
    /// A text that the evaluation made.
    Shared(Arc<str>),
}

impl Text<'_> {
    pub(crate) fn owned(text: String) -> Self {
        Self::Shared(text.into())
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text<'_> {}

impl PartialOrd for Text<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (**self).cmp(&**other)
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
