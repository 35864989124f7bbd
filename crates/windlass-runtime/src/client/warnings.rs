//! The warnings of the API server: deprecated versions, unknown fields, and the warnings of admission webhooks and policies.

use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use http::{HeaderMap, Method, header};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The number of remembered texts. Beyond that, all texts are forgotten, and logged again.
const REMEMBERED: usize = 1024;

/// The number of warnings in each [`PERIOD`] at most. Further warnings are logged at debug level: a text may name an object, and differ for
/// each object.
const MOST_OF_PERIOD: u32 = 10;
const PERIOD: Duration = Duration::from_mins(1);

/// The only code that the API server sends.
const MISCELLANEOUS: &str = "299";

/// Logs the warnings of responses. A text that repeats is a warning once, and later at debug level.
#[derive(Default)]
pub(crate) struct ServerWarnings {
    logged: Mutex<Logged>,
    are_silent: AtomicBool,
}

/// The warnings that were logged.
#[derive(Default)]
struct Logged {
    texts: BTreeSet<String>,
    /// The beginning of the current period.
    since: Option<Instant>,
    /// The warnings in the current period.
    count: u32,
}

impl ServerWarnings {
    /// Logs all further warnings at debug level.
    pub(crate) fn silence(&self) {
        self.are_silent.store(true, Ordering::Relaxed);
    }

    /// Logs the warnings of a response.
    pub(super) fn log(&self, method: &Method, headers: &HeaderMap) {
        // Nearly no response has a warning.
        for value in headers.get_all(header::WARNING) {
            for text in texts(&String::from_utf8_lossy(value.as_bytes())) {
                let is_silent = self.are_silent.load(Ordering::Relaxed);
                if !is_silent && self.logged.lock().admits(&text, Instant::now()) {
                    tracing::warn!(%method, "the API server warns: {text}");
                } else {
                    tracing::debug!(%method, "the API server warns: {text}");
                }
            }
        }
    }
}

impl Logged {
    /// Returns whether a text is new, and few warnings were logged in the current period.
    fn admits(&mut self, text: &str, now: Instant) -> bool {
        if self.texts.contains(text) {
            return false;
        }
        if self.since.is_none_or(|since| now.duration_since(since) >= PERIOD) {
            (self.since, self.count) = (Some(now), 0);
        }
        if self.count >= MOST_OF_PERIOD {
            return false;
        }
        self.count += 1;
        if self.texts.len() >= REMEMBERED {
            self.texts.clear();
        }
        self.texts.insert(text.to_owned())
    }
}

/// Returns the texts of a header `Warning`, up to the first part that is no warning.
fn texts(header: &str) -> Vec<String> {
    let (mut texts, mut rest) = (Vec::new(), header);
    while let Some((code, text, next)) = warning(rest) {
        if code == MISCELLANEOUS && !text.is_empty() {
            texts.push(text);
        }
        rest = next;
    }
    texts
}

/// Splits a warning off: a code, an agent, a text in quotes, and perhaps a date in quotes. Returns the code, the text and the rest.
fn warning(header: &str) -> Option<(&str, String, &str)> {
    let (code, rest) = header.trim_start_matches([' ', ',']).split_once(' ')?;
    let (_agent, rest) = rest.split_once(' ')?;
    let (text, rest) = quoted(rest.trim_start())?;
    let rest = quoted(rest.trim_start()).map_or(rest, |(_date, rest)| rest);
    Some((code, text, rest))
}

/// Splits a text in quotes off. A backslash precedes a quote or a backslash of the text.
fn quoted(header: &str) -> Option<(String, &str)> {
    let (mut text, mut characters) = (String::new(), header.strip_prefix('"')?.chars());
    loop {
        match characters.next()? {
            '"' => return Some((text, characters.as_str())),
            '\\' => text.push(characters.next()?),
            other => text.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_has_several_warnings() {
        let header =
            r#"299 - "a \"quote\", and \\", 299 kube "b" "Sat, 25 Aug 2012 23:34:45 GMT",214 - "c",299 - """#;
        assert_eq!(texts(header), [r#"a "quote", and \"#, "b"]);
        for broken in ["", "299", "299 -", "299 - text", r#"299 - "open"#, r#"299 - "open\"#] {
            assert_eq!(texts(broken), Vec::<String>::new(), "{broken}");
        }
    }

    /// The text of a warning of a webhook may name the object.
    #[test]
    fn warnings_with_ever_new_texts_are_few() {
        let (mut logged, begun) = (Logged::default(), Instant::now());
        let mut admitted = |after, texts: std::ops::Range<u32>| {
            let admit = |text: &u32| logged.admits(&text.to_string(), begun + Duration::from_secs(after));
            texts.filter(admit).count()
        };
        assert_eq!(admitted(0, 0..100), 10);
        assert_eq!(admitted(59, 100..200), 0);
        assert_eq!(admitted(60, 5..15), 5, "a text that was left out is logged later, and no text twice");
        assert_eq!(admitted(61, 200..300), 5);
    }
}
