//! Takes comments and pages apart into sentences, and counts the words that refer back to another sentence.

use std::ops::AddAssign;

use regex::Regex;

/// Words that stand for a noun. Well-kept crates have 1.5 to 3 for each 100 words of comments.
const BACK_REFERENCES: &str = r"(?i)\b(it|its|itself|ones?|those|them|they|theirs?|these|another|others|what|whatever|which|whose|whoever|something|somebody|nobody|nothing|so)\b";

/// Words at the start of a sentence that has no subject: "What is missing.", "Whether the pod runs."
const QUESTIONS: &str = r"(?i)^(what|whether|who|whoever|which|those|as many|so many)\b";

/// The patterns that find sentences and words.
pub(super) struct Reader {
    back_reference: Regex,
    question: Regex,
    word: Regex,
    letters: Regex,
    blank: Regex,
    comment: Regex,
    comment_after_code: Regex,
    code_block: Regex,
    code_span: Regex,
    link: Regex,
    markup: Regex,
}

/// The counts of one or more sentences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) words: u32,
    pub(super) back_references: u32,
    pub(super) sentences: u32,
    /// The sentences that begin with What, Whether, Who, …
    pub(super) questions: u32,
}

impl Count {
    /// Returns the back-references for each 100 words.
    pub(super) fn back_references_per_100_words(self) -> f64 {
        percent(self.back_references, self.words)
    }

    /// Returns the percentage of sentences that begin with What, Whether, Who, …
    pub(super) fn percent_of_questions(self) -> f64 {
        percent(self.questions, self.sentences)
    }
}

fn percent(part: u32, whole: u32) -> f64 {
    100.0 * f64::from(part) / f64::from(whole.max(1))
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.words += other.words;
        self.back_references += other.back_references;
        self.sentences += other.sentences;
        self.questions += other.questions;
    }
}

impl Reader {
    /// # Errors
    ///
    /// A pattern is not a regular expression.
    pub(super) fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            back_reference: Regex::new(BACK_REFERENCES)?,
            question: Regex::new(QUESTIONS)?,
            word: Regex::new("[A-Za-z']+")?,
            letters: Regex::new("[A-Za-z]+")?,
            blank: Regex::new(r"\s+")?,
            comment: Regex::new(r"^\s*//[/!]? ?(.*)$")?,
            comment_after_code: Regex::new(r"\s//\s(.*)$")?,
            code_block: Regex::new("(?s)```.*?```")?,
            code_span: Regex::new("`[^`]*`")?,
            link: Regex::new(r"\[([^\]]*)\]\([^)]*\)")?,
            markup: Regex::new("[|*#>]")?,
        })
    }

    /// Returns the comments of a Rust file as paragraphs, separated by blank lines.
    pub(super) fn comments(&self, source: &str) -> String {
        let mut comments = String::new();
        for line in source.lines() {
            if let Some(text) = self.comment.captures(line) {
                comments.push_str(&text[1]);
            } else if let Some(text) = self.comment_after_code.captures(line)
                && !line.contains('"')
            {
                comments.push_str("\n\n");
                comments.push_str(&text[1]);
                comments.push('\n');
            }
            comments.push('\n');
        }
        comments
    }

    /// Returns the sentences of a text in Markdown. Code blocks are left out, and code spans count as one word.
    /// A text of less than three words is no sentence.
    pub(super) fn sentences(&self, text: &str) -> Vec<String> {
        let text = self.code_block.replace_all(text, " ");
        let text = self.code_span.replace_all(&text, "code");
        let text = self.link.replace_all(&text, "$1");
        let text = self.markup.replace_all(&text, " ");
        let mut sentences = Vec::new();
        let mut start = 0;
        for blank in self.blank.find_iter(&text) {
            if ends_sentence(&text[..blank.start()], blank.as_str(), &text[blank.end()..]) {
                sentences.push(without_dash(&text[start..blank.start()]));
                start = blank.end();
            }
        }
        sentences.push(without_dash(&text[start..]));
        let sentences =
            sentences.into_iter().filter(|sentence| self.letters.find_iter(sentence).count() >= 3);
        sentences.map(|sentence| self.blank.replace_all(sentence.trim(), " ").into_owned()).collect()
    }

    /// Counts the words of one sentence.
    pub(super) fn count(&self, sentence: &str) -> Count {
        let count = |pattern: &Regex| u32::try_from(pattern.find_iter(sentence).count()).unwrap_or(u32::MAX);
        Count {
            words: count(&self.word),
            back_references: count(&self.back_reference),
            sentences: 1,
            questions: u32::from(self.question.is_match(sentence)),
        }
    }
}

/// Returns the text of a list's item.
fn without_dash(sentence: &str) -> &str {
    sentence.strip_prefix("- ").unwrap_or(sentence)
}

/// Returns whether a sentence ends at a blank: at punctuation before a capital, at an empty line, or before the
/// item of a list.
fn ends_sentence(before: &str, blank: &str, after: &str) -> bool {
    let punctuated = before.ends_with(['.', '!', '?', ':', ';']);
    let capital = after.starts_with(|c: char| c.is_ascii_uppercase() || c == '[');
    let lines = blank.matches('\n').count();
    punctuated && capital || lines > 1 || lines == 1 && after.starts_with("- ")
}

#[cfg(test)]
mod tests {
    use super::{Count, Reader};

    fn sentences(text: &str) -> Vec<String> {
        Reader::new().unwrap().sentences(text)
    }

    #[test]
    fn comments_are_separated_by_code() {
        let mark = "//";
        let source = format!(
            "{mark}! Counts the pods\n{mark}! of a node.\nlet a = 1; {mark} The first pod wins\nlet b = \"c {mark} a string literal\";\n    {mark} Waits for the node.\n"
        );
        let reader = Reader::new().unwrap();
        let found = reader.sentences(&reader.comments(&source));
        assert_eq!(found, ["Counts the pods of a node.", "The first pod wins", "Waits for the node."]);
    }

    #[test]
    fn sentences_end_at_punctuation_and_before_items() {
        let text = "The pod of `a. B` runs on\na node. The [node](a.md) is full:\n- the first item, e.g. a pod\n- the second item\n\n```rust\nlet no_sentence = 1;\n```\n";
        assert_eq!(
            sentences(text),
            [
                "The pod of code runs on a node.",
                "The node is full:",
                "the first item, e.g. a pod",
                "the second item"
            ]
        );
    }

    #[test]
    fn back_references_are_counted_as_whole_words() {
        let reader = Reader::new().unwrap();
        let count = |sentence| reader.count(sentence);
        let plain = Count { words: 5, back_references: 0, sentences: 1, questions: 0 };
        assert_eq!(count("The item exits with sorrow."), plain);
        let vague = Count { words: 7, back_references: 3, sentences: 1, questions: 1 };
        assert_eq!(count("What one of those waits for, again."), vague);
    }
}
