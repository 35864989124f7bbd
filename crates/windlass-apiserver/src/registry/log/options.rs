//! `PodLogOptions`: the requested part of a log.

use std::time::SystemTime;

use jiff::{SignedDuration, Timestamp};
use windlass_schema::{FieldError, go_quote};

use crate::nodes::LogRequest;
use crate::registry::options::parse_integer;
use crate::route::Query;
use crate::wire::ApiError;

/// The requested part of a log, and the format of the lines.
pub(super) struct LogOptions {
    pub follow: bool,
    pub previous: bool,
    /// True if each line begins with a time.
    timestamps: bool,
    tail_lines: Option<usize>,
    limit_bytes: Option<usize>,
    since: Option<Since>,
}

/// The time of the first line.
enum Since {
    Ago(i64),
    Time(Timestamp),
}

impl LogOptions {
    /// Reads the query of a request for the log of the pod `name`.
    ///
    /// # Errors
    /// 400 for a malformed number or time, 422 for a value out of range.
    pub(super) fn parse(query: &Query, name: &str) -> Result<Self, ApiError> {
        let flag = |name: &str| query.flag(name).unwrap_or(false);
        let tail = number(query, "tailLines")?;
        let limit = number(query, "limitBytes")?;
        let ago = number(query, "sinceSeconds")?;
        let time = time(query.text("sinceTime"))?;
        let mut errors = Vec::new();
        let mut at_least = |least: i64, name: &str, number: Option<i64>| {
            let why =
                if least == 0 { "must be greater than or equal to 0" } else { "must be greater than 0" };
            errors.extend(
                number.filter(|number| *number < least).map(|number| FieldError::invalid(name, number, why)),
            );
        };
        at_least(0, "tailLines", tail);
        at_least(1, "limitBytes", limit);
        if ago.is_some() && time.is_some() {
            let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            errors.push(FieldError::forbidden("[]", why));
        } else {
            at_least(1, "sinceSeconds", ago);
        }
        if query.get("stream").is_some() {
            errors.push(FieldError::forbidden("stream", "may not be specified"));
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid("", "PodLogOptions", name, &errors));
        }
        let size = |number: Option<i64>| number.and_then(|number| usize::try_from(number).ok());
        Ok(Self {
            follow: flag("follow"),
            previous: flag("previous"),
            timestamps: flag("timestamps"),
            tail_lines: size(tail),
            limit_bytes: size(limit),
            since: ago.map(Since::Ago).or(time.map(Since::Time)),
        })
    }

    /// Returns the request for a node.
    pub(super) fn request(&self, now: Timestamp) -> LogRequest {
        LogRequest {
            follow: self.follow,
            previous: self.previous,
            timestamps: self.timestamps,
            tail: self.tail_lines,
            since: self.since(now).map(SystemTime::from),
            limit: self.limit_bytes,
        }
    }

    /// Returns the time of the first line.
    fn since(&self, now: Timestamp) -> Option<Timestamp> {
        self.since.as_ref().map(|since| match since {
            Since::Ago(seconds) => {
                now.checked_sub(SignedDuration::from_secs(*seconds)).unwrap_or(Timestamp::MIN)
            }
            Since::Time(time) => *time,
        })
    }

    /// Returns the first part of a log. All lines of the log were written at `started`.
    pub(super) fn first(&self, text: &str, started: Option<Timestamp>, now: Timestamp) -> String {
        let since = self.since(now);
        if since.zip(started).is_some_and(|(since, started)| started < since) {
            return String::new();
        }
        let all = text.split_inclusive('\n').count();
        let skipped = self.tail_lines.map_or(0, |lines| all.saturating_sub(lines));
        let shown: String = text.split_inclusive('\n').skip(skipped).collect();
        self.next(&shown, started, 0)
    }

    /// Returns the lines to send after the first `sent` bytes.
    pub(super) fn next(&self, lines: &str, started: Option<Timestamp>, sent: usize) -> String {
        let mut text = match started.filter(|_| self.timestamps) {
            Some(time) => lines
                .split_inclusive('\n')
                .fold(String::new(), |text, line| text + &format!("{time:.9} {line}")),
            None => lines.to_owned(),
        };
        if let Some(limit) = self.limit_bytes {
            text.truncate(text.floor_char_boundary(limit.saturating_sub(sent)));
        }
        text
    }
}

fn number(query: &Query, name: &str) -> Result<Option<i64>, ApiError> {
    let text = query.text(name);
    if text.is_empty() {
        return Ok(None);
    }
    parse_integer(text).map(Some)
}

fn time(text: &str) -> Result<Option<Timestamp>, ApiError> {
    if text.is_empty() {
        return Ok(None);
    }
    let time = text.parse().map_err(|_| {
        let quoted = go_quote(text);
        ApiError::bad_request(format!(
            "parsing time {quoted} as \"2006-01-02T15:04:05Z07:00\": cannot parse {quoted} as \"2006\""
        ))
    })?;
    Ok(Some(time))
}
