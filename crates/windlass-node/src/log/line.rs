//! A line of a log file.

use std::time::SystemTime;

use jiff::Timestamp;

/// The stream that a program has written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStream {
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
}

impl LogStream {
    /// Returns `stdout` or `stderr`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// A line of a log file: `TIME STREAM TAG CONTENT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// The time, in RFC 3339 with nanoseconds.
    pub time: &'a str,
    /// The stream.
    pub stream: LogStream,
    /// True if the program's line goes on in the next line of the file (tag `P`).
    pub partial: bool,
    /// The text, without a line feed.
    pub content: &'a [u8],
}

impl<'a> LogLine<'a> {
    /// Parses a line without its line feed. Returns `None` for a line that is torn.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let mut parts = line.splitn(4, |byte| *byte == b' ');
        let time = std::str::from_utf8(parts.next()?).ok()?;
        let stream = match parts.next()? {
            b"stdout" => LogStream::Stdout,
            b"stderr" => LogStream::Stderr,
            _ => return None,
        };
        let partial = match parts.next()? {
            b"F" => false,
            b"P" => true,
            _ => return None,
        };
        Some(Self { time, stream, partial, content: parts.next()? })
    }

    /// Appends the line and a line feed to `text`.
    pub fn append_to(&self, text: &mut Vec<u8>) {
        text.extend_from_slice(self.time.as_bytes());
        text.push(b' ');
        text.extend_from_slice(self.stream.name().as_bytes());
        text.extend_from_slice(if self.partial { b" P " } else { b" F " });
        text.extend_from_slice(self.content);
        text.push(b'\n');
    }

    /// Returns whether the line was written at `time` or later. A time that does not parse counts as later.
    pub fn is_since(&self, time: SystemTime) -> bool {
        let own: Result<Timestamp, _> = self.time.parse();
        own.map_or(true, |own| SystemTime::from(own) >= time)
    }
}

/// Formats a time as the log files have it.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let time = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{time:.9}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_line_reads_as_it_was_written() {
        let time = timestamp(SystemTime::UNIX_EPOCH + Duration::from_nanos(1_000_000_020));
        assert_eq!(time, "1970-01-01T00:00:01.000000020Z");
        let line = LogLine { time: &time, stream: LogStream::Stderr, partial: true, content: b"a b  c" };
        let mut text = Vec::new();
        line.append_to(&mut text);
        assert_eq!(text, b"1970-01-01T00:00:01.000000020Z stderr P a b  c\n");
        assert_eq!(LogLine::parse(&text[..text.len() - 1]), Some(line));
        assert!(line.is_since(SystemTime::UNIX_EPOCH + Duration::from_secs(1)));
        assert!(!line.is_since(SystemTime::UNIX_EPOCH + Duration::from_secs(2)));
    }

    #[test]
    fn a_torn_line_is_no_line() {
        for torn in ["", "2026", "2026-11-23T00:00:00Z stdout", "t stdout X y", "t other F y"] {
            assert_eq!(LogLine::parse(torn.as_bytes()), None, "{torn}");
        }
    }
}
