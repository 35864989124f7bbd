//! Logs on stderr, quiet unless asked.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging: warnings and errors; with `verbose` more; `RUST_LOG` has the last word.
pub(crate) fn start(verbose: u8) {
    let default = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}
