//! Lines for a person, or for a pipe.

use std::fmt;
use std::io::{self, Write};
use std::time::Instant;

/// Where lines go. Each is written at once; that nobody reads them any more is no error.
pub(crate) struct Voice {
    out: Box<dyn Write + Send>,
    since: Instant,
}

impl Voice {
    pub(crate) fn stdout() -> Self {
        Self::to(io::stdout())
    }

    pub(crate) fn stderr() -> Self {
        Self::to(io::stderr())
    }

    /// Speaks into any writer.
    pub(crate) fn to(out: impl Write + Send + 'static) -> Self {
        Self { out: Box::new(out), since: Instant::now() }
    }

    /// One line.
    pub(crate) fn line(&mut self, line: impl fmt::Display) {
        // A reader that went away (`windlass demo | head`) must not end a control plane.
        let _ = writeln!(self.out, "{line}").and_then(|()| self.out.flush());
    }

    /// One line that says when, in seconds since the start.
    pub(crate) fn moment(&mut self, line: impl fmt::Display) {
        let seconds = self.since.elapsed().as_secs_f64();
        self.line(format_args!("{seconds:8.2}s  {line}"));
    }
}
