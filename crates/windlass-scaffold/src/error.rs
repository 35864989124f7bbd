//! Why a request is refused.

use std::io;
use std::path::PathBuf;

/// A result with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason for a refused request. No file has been written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A name does not follow the rules of Kubernetes or Rust.
    #[error("{what} {name:?} {problem}")]
    Name {
        /// The kind of name: `kind`, `group`, ….
        what: &'static str,
        /// The name.
        name: String,
        /// The problem, and the advice.
        problem: String,
    },
    /// The request does not fit the project.
    #[error("{0}")]
    Refused(String),
    /// `windlass.toml` cannot be read.
    #[error("windlass.toml: {0}")]
    State(String),
    /// Files of the user would be overwritten.
    #[error("{} already: {}. Move {them} away, or overwrite {them} with --force", exist(.0), .0.join(", "), them = them(.0))]
    Exists(Vec<String>),
    /// Files of the user would be deleted.
    #[error("{} changed since windlass wrote {them}, and not committed: {}. Commit {them}, or delete {them} with --force", are(.0), .0.join(", "), them = them(.0))]
    Edited(Vec<String>),
    /// A file or folder could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A file or folder could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn refused<T>(text: impl Into<String>) -> Result<T> {
        Err(Self::Refused(text.into()))
    }
}

fn exist(files: &[String]) -> &'static str {
    if files.len() == 1 { "a file exists" } else { "files exist" }
}

fn them(files: &[String]) -> &'static str {
    if files.len() == 1 { "it" } else { "them" }
}

fn are(files: &[String]) -> &'static str {
    if files.len() == 1 { "a file was" } else { "files were" }
}
