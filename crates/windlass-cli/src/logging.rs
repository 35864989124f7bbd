//! Logs on stderr.

use std::io::IsTerminal;
use std::{env, io};

use tracing_subscriber::EnvFilter;

/// Starts logging at the level of `-v`. The default is warnings. `RUST_LOG` overrides the level.
///
/// Colors are used only on a terminal, and not if `NO_COLOR` is set.
pub(crate) fn start(verbose: u8) {
    let default = match verbose {
        // The client logs each failed request as an error; the command prints the error.
        0 => "warn,kube_client::client::builder=off",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal() && !no_color)
        .init();
}
