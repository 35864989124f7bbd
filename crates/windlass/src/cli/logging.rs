//! Logging to stderr.

use std::{io::IsTerminal, panic::PanicHookInfo};

use clap::error::ErrorKind;
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::{LevelFilter, ParseError},
    prelude::*,
};

use super::{LogFormat, ManagerArgs, telemetry};

/// A target that only repeats Windlass' own log lines. A filter that names the target overrides this filter.
const SILENCED: &str = "kube_client::client::builder=off";

/// Libraries of connections, which log every frame at `debug`. A filter with `debug` or `trace` for all targets means Windlass
/// and the operator: these libraries stay at `info` unless the filter names the library.
const LIBRARIES: [&str; 8] =
    ["h2", "hyper", "hyper_util", "rustls", "tower", "tower_http", "tungstenite", "tokio_tungstenite"];

impl ManagerArgs {
    /// Logs to stderr with the level and format of the flags. Does nothing if the program has set up logging
    /// already.
    ///
    /// Text is coloured only if stderr is a terminal and `NO_COLOR` is not set. With `--log-format json` every line is JSON:
    /// panics are logged, too.
    pub fn init_logging(&self) {
        let level = self.zap.log_level().unwrap_or(&self.log_level);
        let filter = filter(level).unwrap_or_else(|error| {
            super::refusal(ErrorKind::InvalidValue, format_args!("--log-level {level}: {error}")).exit()
        });
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let log = tracing_subscriber::fmt::layer()
            .with_ansi(!no_color && std::io::stderr().is_terminal())
            .with_timer(self.zap.clock())
            .with_writer(std::io::stderr);
        let json = self.zap.log_format().unwrap_or(self.log_format) == LogFormat::Json;
        let log = if json { log.json().flatten_event(true).boxed() } else { log.boxed() };
        let (spans, problem) = telemetry::layer();
        let registry = tracing_subscriber::registry().with(log.with_filter(filter)).with(spans);
        if registry.try_init().is_ok() && json {
            std::panic::set_hook(Box::new(log_panic));
        }
        if let Some(problem) = problem {
            tracing::warn!(problem, "no telemetry is sent");
        }
        if self.zap.zap_stacktrace_level.is_some() {
            tracing::info!("--zap-stacktrace-level has no effect: errors are logged with their causes");
        }
    }
}

/// Returns a log of warnings and errors, for the parts of a control plane beside the operator.
#[cfg(feature = "dev")]
pub(super) fn warnings_only() -> tracing::Dispatch {
    let log = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_writer(std::io::stderr);
    tracing::Dispatch::new(log.with_ansi(std::io::stderr().is_terminal()).finish())
}

/// Returns the filter of a level, or of directives in the syntax of `RUST_LOG`.
pub(super) fn filter(level: &str) -> Result<EnvFilter, ParseError> {
    let directives = || level.split(',');
    let mut filter = SILENCED.to_owned();
    if directives().any(is_verbose) {
        let unnamed = LIBRARIES.iter().filter(|library| !directives().any(|text| names(text, library)));
        // A target is a prefix: with the colons, an operator `tower_something` is not meant.
        filter.extend(unnamed.map(|library| format!(",{library}::=info")));
    }
    EnvFilter::try_new(format!("{filter},{level}"))
}

/// Returns whether a directive is a level above `info` for all targets.
fn is_verbose(directive: &str) -> bool {
    directive.parse().is_ok_and(|level: LevelFilter| level > LevelFilter::INFO)
}

/// Returns whether a directive is about a whole library.
fn names(directive: &str, library: &str) -> bool {
    let rest = directive.strip_prefix(library);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['=', '[']))
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string);
    tracing::error!(panic = panic.payload_as_str(), location, "a thread panicked");
}
