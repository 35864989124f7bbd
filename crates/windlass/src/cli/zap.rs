//! The logging flags of controller-runtime's package zap, for Deployments that pass them.

use std::{fmt, str::FromStr};

use clap::{ArgAction, Args, ValueEnum};
use jiff::Timestamp;
use tracing_subscriber::fmt::{format::Writer, time::FormatTime};

use super::LogFormat;

#[cfg_attr(
    doc,
    doc = "The logging flags of controller-runtime: each sets what a flag of Windlass sets. `--help` does not list them."
)]
// Documented for rustdoc only: clap would make the text the description of the program.
#[cfg_attr(not(doc), allow(missing_docs))]
#[derive(Args, Clone, Debug, Default)]
#[non_exhaustive]
pub struct ZapArgs {
    /// Log text at level debug; =false: JSON at level info
    #[arg(long, global = true, hide = true, value_name = "BOOL", num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = ArgAction::Set)]
    pub zap_devel: Option<bool>,
    /// Format of log lines
    #[arg(long, global = true, hide = true, value_name = "FORMAT", value_enum)]
    pub zap_encoder: Option<ZapEncoder>,
    /// Log level: debug, info, error, panic, or a number: 1 for debug, more for trace
    #[arg(long, global = true, hide = true, value_name = "LEVEL")]
    pub zap_log_level: Option<ZapLevel>,
    /// Without effect: errors are logged with their causes
    #[arg(long, global = true, hide = true, value_name = "LEVEL")]
    pub zap_stacktrace_level: Option<ZapLevel>,
    /// Format of the time of log lines
    #[arg(long, global = true, hide = true, value_name = "FORMAT", value_enum)]
    pub zap_time_encoding: Option<TimeEncoding>,
}

/// The format of log lines, in zap's words.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ZapEncoder {
    /// One JSON object per line.
    Json,
    /// Text.
    Console,
}

/// A level in zap's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZapLevel(&'static str);

impl FromStr for ZapLevel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.parse::<u8>();
        match (text, number) {
            ("debug", _) | (_, Ok(1)) => Ok(Self("debug")),
            ("info", _) => Ok(Self("info")),
            ("error" | "panic", _) => Ok(Self("error")),
            (_, Ok(2..)) => Ok(Self("trace")),
            _ => Err("expected debug, info, error, panic, or a number greater than 0".to_owned()),
        }
    }
}

/// The format of the time of log lines, in zap's words.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeEncoding {
    /// Seconds since 1970, with a fraction.
    Epoch,
    /// Milliseconds since 1970, with a fraction.
    Millis,
    /// Nanoseconds since 1970.
    Nano,
    /// Such as `2026-11-22T17:16:07.000Z`.
    Iso8601,
    /// Such as `2026-11-22T17:16:07Z`.
    Rfc3339,
    /// Such as `2026-11-22T17:16:07.000000001Z`.
    #[value(name = "rfc3339nano")]
    Rfc3339Nano,
}

impl ZapArgs {
    /// Returns the format that the flags set. `--zap-encoder` goes before `--zap-devel`.
    pub(super) fn log_format(&self) -> Option<LogFormat> {
        match (self.zap_encoder, self.zap_devel) {
            (Some(ZapEncoder::Json), _) | (None, Some(false)) => Some(LogFormat::Json),
            (Some(ZapEncoder::Console), _) | (None, Some(true)) => Some(LogFormat::Text),
            (None, None) => None,
        }
    }

    /// Returns the level that the flags set. `--zap-log-level` goes before `--zap-devel`.
    pub(super) fn log_level(&self) -> Option<&'static str> {
        match (self.zap_log_level, self.zap_devel) {
            (Some(ZapLevel(level)), _) => Some(level),
            (None, Some(devel)) => Some(if devel { "debug" } else { "info" }),
            (None, None) => None,
        }
    }

    /// Returns the format of times. Default: RFC 3339 with microseconds.
    pub(super) fn clock(&self) -> LogClock {
        LogClock(self.zap_time_encoding)
    }
}

/// Writes the time of a log line.
#[derive(Clone, Copy)]
pub(super) struct LogClock(Option<TimeEncoding>);

impl LogClock {
    fn write(self, now: Timestamp, out: &mut impl fmt::Write) -> fmt::Result {
        match self.0 {
            None => write!(out, "{now:.6}"),
            Some(TimeEncoding::Epoch) => write!(out, "{}.{:09}", now.as_second(), now.subsec_nanosecond()),
            Some(TimeEncoding::Millis) => {
                write!(out, "{}.{:06}", now.as_millisecond(), now.subsec_nanosecond() % 1_000_000)
            }
            Some(TimeEncoding::Nano) => write!(out, "{}", now.as_nanosecond()),
            Some(TimeEncoding::Iso8601) => write!(out, "{now:.3}"),
            Some(TimeEncoding::Rfc3339) => write!(out, "{now:.0}"),
            Some(TimeEncoding::Rfc3339Nano) => write!(out, "{now:.9}"),
        }
    }
}

impl FormatTime for LogClock {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        self.write(Timestamp::now(), out)
    }
}

#[cfg(test)]
mod tests {
    use super::{LogClock, TimeEncoding, ZapLevel};

    #[test]
    fn times_are_written_as_zap_does() {
        let now = "2026-11-22T17:16:07.012345678Z".parse().expect("a time");
        let text = |encoding| {
            let mut out = String::new();
            LogClock(encoding).write(now, &mut out).expect("written");
            out
        };
        assert_eq!(text(None), "2026-11-22T17:16:07.012345Z");
        assert_eq!(text(Some(TimeEncoding::Epoch)), "1795367767.012345678");
        assert_eq!(text(Some(TimeEncoding::Millis)), "1795367767012.345678");
        assert_eq!(text(Some(TimeEncoding::Nano)), "1795367767012345678");
        assert_eq!(text(Some(TimeEncoding::Iso8601)), "2026-11-22T17:16:07.012Z");
        assert_eq!(text(Some(TimeEncoding::Rfc3339)), "2026-11-22T17:16:07Z");
        assert_eq!(text(Some(TimeEncoding::Rfc3339Nano)), "2026-11-22T17:16:07.012345678Z");
    }

    #[test]
    fn levels_are_words_and_numbers() {
        let level = |text: &str| text.parse::<ZapLevel>().map(|level| level.0);
        assert_eq!(
            ["debug", "1", "info", "error", "panic", "5"].map(level).map(Result::unwrap),
            ["debug", "debug", "info", "error", "error", "trace"]
        );
        assert!(["0", "-1", "loud", ""].into_iter().all(|text| level(text).is_err()));
    }
}
