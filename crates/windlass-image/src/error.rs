//! Errors of images, stores and registries.

use std::fmt::Display;
use std::path::Path;

use crate::{Digest, ParseReferenceError};

/// The result of an operation on images.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation on images failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name of an image does not parse.
    #[error(transparent)]
    Name(#[from] ParseReferenceError),
    /// The image, the manifest or the blob does not exist.
    #[error("{0}")]
    NotFound(String),
    /// A registry refused the credentials, or needs credentials.
    #[error("{0}")]
    Unauthorized(String),
    /// A registry could not be reached, or failed. A retry may succeed.
    #[error("{0}")]
    Unavailable(String),
    /// A registry refused a request for another reason than the credentials.
    #[error("{0}")]
    Refused(String),
    /// An image is broken or hostile: a digest does not match, a path leaves the root, a limit is exceeded.
    #[error("{0}")]
    Invalid(String),
    /// A blob does not have the digest that its name promises.
    #[error("{what} has the digest {found} instead of {expected}")]
    WrongDigest {
        /// The blob, in words.
        what: String,
        /// The promised digest.
        expected: Digest,
        /// The digest of the bytes.
        found: Digest,
    },
    /// The file system failed: the disk is full, for example.
    #[error("{doing}: {error}")]
    Storage {
        /// The operation, with the path.
        doing: String,
        /// The answer of the operating system.
        error: std::io::Error,
    },
}

impl Error {
    /// Makes an error for an operation on a path.
    pub(crate) fn storage(doing: &str, path: &Path, error: impl Into<std::io::Error>) -> Self {
        Self::Storage { doing: format!("cannot {doing} {}", path.display()), error: error.into() }
    }

    pub(crate) fn invalid(message: impl Display) -> Self {
        Self::Invalid(message.to_string())
    }
}
