//! The streams of a command or of a container.

use std::fmt;
use std::future::Future;
use std::io::Cursor;
use std::pin::Pin;
use std::time::SystemTime;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::mpsc;

use crate::{CommandOutput, Exit, RuntimeError, TerminalSize};

/// The most bytes of an output that are kept.
pub(crate) const MOST_OUTPUT: usize = 10 << 10;

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

impl Session {
    /// Returns the session of a command that cannot be executed: the error output has the reason, and the exit code is that of a shell,
    /// 127 for a program that does not exist and 126 for a file that is no program.
    pub(crate) fn not_executed(code: i32, reason: &str, started_at: SystemTime) -> Self {
        let text = format!("exec failed: unable to start container process: {reason}\n");
        let finished_at = SystemTime::now();
        let exit = Exit { code, signal: None, out_of_memory: false, started_at, finished_at };
        Self {
            stdin: None,
            stdout: Some(Box::pin(tokio::io::empty())),
            stderr: Some(Box::pin(Cursor::new(text.into_bytes()))),
            resize: None,
            exit: Box::pin(std::future::ready(Ok(exit))),
        }
    }

    /// Waits for the end of a command, and returns the first 10 KiB of each output.
    pub(crate) async fn collect(&mut self) -> Result<CommandOutput, RuntimeError> {
        let (stdout, stderr) = (self.stdout.take(), self.stderr.take());
        let (mut text, error) = tokio::join!(read(stdout), read(stderr));
        text.extend(error);
        let code = (&mut self.exit).await?.code;
        Ok(CommandOutput { code, text })
    }
}

/// Reads an output to its end.
async fn read(stream: Option<Pin<Box<dyn AsyncRead + Send>>>) -> Vec<u8> {
    let mut text = Vec::new();
    if let Some(mut stream) = stream {
        let _ = (&mut stream).take(MOST_OUTPUT as u64).read_to_end(&mut text).await;
        // The rest is read too: a full pipe would stop the command.
        let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    }
    text
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}
