//! Errors of an expression's text: syntax and types.

use std::fmt;

/// The number of issues that are kept; further issues are only counted.
const MAX_ISSUES: usize = 100;

/// The length in bytes of the longest line that the text of an issue repeats.
const MAX_SNIPPET: usize = 16384;

/// An issue at a position of the expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 0.
    pub column: usize,
    /// The message, without the position.
    pub message: String,
}

/// The issues of an expression that does not compile. `Display` writes the text that kube-apiserver returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    lines: Vec<String>,
    kept: Vec<Issue>,
    count: usize,
}

impl Issues {
    pub(crate) fn new(source: &str) -> Self {
        Self { lines: source.split('\n').map(str::to_owned).collect(), kept: Vec::new(), count: 0 }
    }

    /// Adds an issue at an offset in bytes, or at the start of the expression.
    pub(crate) fn add(&mut self, source: &str, offset: usize, message: impl Into<String>) {
        self.count += 1;
        if self.count > MAX_ISSUES {
            return;
        }
        let mut end = offset.min(source.len());
        while !source.is_char_boundary(end) {
            end -= 1;
        }
        let before = &source[..end];
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.matches('\n').count() + 1;
        self.kept.push(Issue { line, column: before[start..].chars().count(), message: message.into() });
    }

    /// Adds an issue that has no position.
    pub(crate) fn add_general(&mut self, message: impl Into<String>) {
        self.count += 1;
        self.kept.push(Issue { line: 0, column: usize::MAX, message: message.into() });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the issues in the order of their positions.
    pub fn sorted(&self) -> Vec<&Issue> {
        let mut sorted: Vec<&Issue> = self.kept.iter().collect();
        sorted.sort_by_key(|issue| (issue.line, issue.column.wrapping_add(1)));
        sorted
    }
}

impl fmt::Display for Issues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.sorted().into_iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            // cel-go finds no line in an empty expression.
            let is_blank = issue.line == 1 && self.lines.iter().all(String::is_empty);
            let column = if is_blank { issue.column } else { issue.column.wrapping_add(1) };
            let line = if issue.line == 0 { "-1".to_owned() } else { issue.line.to_string() };
            write!(f, "ERROR: <input>:{line}:{column}: {}", issue.message)?;
            let snippet = issue.line.checked_sub(1).and_then(|line| self.lines.get(line));
            if let Some(snippet) = snippet.filter(|snippet| !is_blank && snippet.len() <= MAX_SNIPPET) {
                let snippet = snippet.replace('\t', " ");
                write!(f, "\n | {snippet}\n | {}", marker(&snippet, issue.column))?;
            }
        }
        if self.count > MAX_ISSUES {
            write!(f, "\n{} more errors were truncated", self.count - MAX_ISSUES)?;
        }
        Ok(())
    }
}

impl std::error::Error for Issues {}

/// Returns dots up to a column, and a caret; both are wide under wide characters.
fn marker(snippet: &str, column: usize) -> String {
    let mut characters = snippet.chars();
    let mut text: String =
        characters.by_ref().take(column).map(|c| if c.len_utf8() > 1 { '．' } else { '.' }).collect();
    text.push(if characters.next().is_some_and(|c| c.len_utf8() > 1) { '＾' } else { '^' });
    text
}
