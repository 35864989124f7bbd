//! The streams of a command or of a container.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::{Exit, RuntimeError};

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// The streams of a command or of a container, and its end.
///
/// Dropping `stdin` closes the standard input. Dropping the session ends a command's connection, not the command.
pub struct Session {
    /// Bytes for the standard input, if the program has one.
    pub stdin: Option<Pin<Box<dyn AsyncWrite + Send>>>,
    /// The standard output.
    pub stdout: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// `None` with a terminal, whose output is all in `stdout`.
    pub stderr: Option<Pin<Box<dyn AsyncRead + Send>>>,
    /// Changes the size of the terminal, if there is one.
    pub resize: Option<mpsc::Sender<TerminalSize>>,
    /// Ends when the command or the container has ended.
    pub exit: Pin<Box<dyn Future<Output = Result<Exit, RuntimeError>> + Send>>,
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
