//! `Warning` headers, with kube-apiserver's limits.

use std::collections::HashSet;

/// If the warnings of a response have more characters together, each is cut.
const MAX_TOTAL: usize = 4096;

/// The length to which a warning is cut, in characters.
const MAX_EACH: usize = 256;

/// Returns the values of the `Warning` headers for these texts, in order.
///
/// Empty, repeated and unprintable texts are dropped: a text with control characters cannot be in a header. If the
/// remaining texts have more than 4,096 characters together, each is cut to 256 characters, and texts that exceed the
/// total of 4,096 are dropped.
///
/// Values are bytes of UTF-8, as clients expect.
pub fn warning_headers<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Vec<Vec<u8>> {
    let mut seen = HashSet::new();
    let mut headers = Headers::default();
    // The cut texts until now. If the total is too long, the cut texts replace the full texts.
    let mut cut: Vec<String> = Vec::new();
    let mut is_cutting = false;
    for text in texts {
        let text = text.as_ref();
        if is_cutting && headers.characters >= MAX_TOTAL {
            break;
        }
        if text.is_empty() || !seen.insert(text.to_owned()) {
            continue;
        }
        let short: String = text.chars().take(MAX_EACH).collect();
        if is_cutting {
            headers.add(&short);
            continue;
        }
        cut.push(short);
        if !is_printable(text) {
            continue;
        }
        if headers.characters + text.chars().count() <= MAX_TOTAL {
            headers.add(text);
        } else {
            is_cutting = true;
            headers = Headers::default();
            cut.iter().for_each(|text| headers.add(text));
        }
    }
    headers.values
}

/// Returns whether a reply would not show a text after these texts: all texts are distinct and printable.
pub fn fills_a_reply<T: AsRef<str>>(texts: &[T]) -> bool {
    let cut = texts.iter().map(|text| text.as_ref().chars().take(MAX_EACH).count());
    cut.sum::<usize>() > MAX_TOTAL
}

#[derive(Default)]
struct Headers {
    values: Vec<Vec<u8>>,
    /// The number of characters in all texts.
    characters: usize,
}

impl Headers {
    fn add(&mut self, text: &str) {
        if !is_printable(text) {
            return;
        }
        self.characters += text.chars().count();
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        self.values.push(format!("299 - \"{text}\"").into_bytes());
    }
}

/// Returns whether a header can have the text.
pub fn is_printable(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::{fills_a_reply, warning_headers};

    fn headers(texts: &[&str]) -> Vec<String> {
        warning_headers(texts).into_iter().map(|value| String::from_utf8(value).expect("UTF-8")).collect()
    }

    #[test]
    fn a_text_is_quoted_and_keeps_its_characters() {
        assert_eq!(headers(&["a"]), ["299 - \"a\""]);
        assert_eq!(headers(&[r#"unknown field "x\y""#]), [r#"299 - "unknown field \"x\\y\"""#]);
        assert_eq!(headers(&["größer"]), ["299 - \"größer\""]);
    }

    #[test]
    fn empty_repeated_and_unprintable_texts_are_dropped() {
        let long = format!("{}\n", "x".repeat(5000));
        let texts = ["a", "", "b", "a", "c\nd", "e\u{85}", &long, "f"];
        assert_eq!(headers(&texts), ["299 - \"a\"", "299 - \"b\"", "299 - \"f\""]);
    }

    #[test]
    fn warnings_are_cut_when_they_are_too_long_together() {
        let long = |n: usize| format!("{n}{}", "é".repeat(1000));
        let texts: Vec<String> = (0..4).map(long).collect();
        let lengths = |texts: &[String]| -> Vec<usize> {
            // Without `299 - ` and the quotes.
            warning_headers(texts)
                .iter()
                .map(|value| str::from_utf8(value).expect("UTF-8").chars().count() - 8)
                .collect()
        };
        assert_eq!(lengths(&texts), [1001; 4]);
        let texts: Vec<String> = (0..5).map(long).collect();
        assert_eq!(lengths(&texts), [256; 5]);
        let texts: Vec<String> = (0..100).map(long).collect();
        assert_eq!(lengths(&texts), [256; 16]);
        let texts: Vec<String> = (0..100_000).map(|n| format!("unknown field {n}")).collect();
        let total: usize = lengths(&texts).iter().sum();
        assert!((4096..4096 + 256).contains(&total), "{total}");
    }

    #[test]
    fn a_text_after_a_full_reply_changes_nothing() {
        let mut texts: Vec<String> = Vec::new();
        while !fills_a_reply(&texts) {
            texts.push(format!("{:0>300}", texts.len()));
        }
        let shown = warning_headers(&texts);
        texts.push("more".to_owned());
        assert_eq!(warning_headers(&texts), shown);
    }
}
