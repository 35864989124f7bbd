//! Lines for a terminal or a pipe.

use std::fmt;
use std::io::{self, Write};
use std::time::Instant;

/// A destination for lines. Each line is flushed at once, and a closed pipe is not an error.
pub(crate) struct Output {
    out: Box<dyn Write + Send>,
    start: Instant,
}

impl Output {
    pub(crate) fn stdout() -> Self {
        Self::new(io::stdout())
    }

    pub(crate) fn stderr() -> Self {
        Self::new(io::stderr())
    }

    fn new(out: impl Write + Send + 'static) -> Self {
        Self { out: Box::new(out), start: Instant::now() }
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, line: impl fmt::Display) {
        // A reader that stops reading (`windlass demo | head`) must not end a control plane.
        let _ = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
    }

    /// Writes a line that begins with the seconds since the start of the command.
    pub(crate) fn timed(&mut self, line: impl fmt::Display) {
        let seconds = self.start.elapsed().as_secs_f64();
        self.line(format_args!("{seconds:8.2}s  {line}"));
    }
}
