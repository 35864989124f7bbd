//! The warnings of the API server: deprecated versions, unknown fields, and the warnings of admission webhooks and policies.

use std::collections::BTreeSet;

use http::{HeaderMap, Method, header};
use parking_lot::Mutex;

/// The number of remembered texts. Beyond that, all texts are forgotten, and logged again.
const REMEMBERED: usize = 1024;

/// The only code that the API server sends.
const MISCELLANEOUS: &str = "299";

/// Logs the warnings of responses. A text that repeats is a warning once, and later at debug level.
#[derive(Default)]
pub(super) struct ServerWarnings(Mutex<BTreeSet<String>>);

impl ServerWarnings {
    /// Logs the warnings of a response.
    pub(super) fn log(&self, method: &Method, headers: &HeaderMap) {
        // Nearly no response has a warning.
        for value in headers.get_all(header::WARNING) {
            for text in texts(&String::from_utf8_lossy(value.as_bytes())) {
                if self.is_new(&text) {
                    tracing::warn!(%method, "the API server warns: {text}");
                } else {
                    tracing::debug!(%method, "the API server warns: {text}");
                }
            }
        }
    }

    fn is_new(&self, text: &str) -> bool {
        let mut known = self.0.lock();
        if known.contains(text) {
            return false;
        }
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(text.to_owned())
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
}
