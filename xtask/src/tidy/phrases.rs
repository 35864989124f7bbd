//! Finds phrases in comments and pages that are hard to read without the story behind the phrase.

use super::Report;
use super::files::{files, read, shown};
use super::markdown::Page;
use crate::{Result, project};

/// Phrases that stand for a plain noun or verb, and the advice for each phrase.
const PHRASES: &[(&str, &str)] = &[
    ("comes to that", "say when"),
    ("for want of", "write `without`, or name the error"),
    ("held against", "write `compared with`"),
    ("in vain", "name the error"),
    ("let pass", "write `accepted`"),
    ("lies in", "write `is in`"),
    ("nobody", "name the caller, user or process"),
    ("somebody", "name the caller, user or process"),
    ("the word to", "write `signal` or `request`"),
    ("told of", "write `notified of`, or name the call"),
    ("what becomes of", "name the result"),
    ("what is none", "write `any other value`"),
    ("whoever", "name the caller, task or object"),
];

/// Folders of the workspace that are checked later.
const EXCLUDED: &[&str] = &["crates/windlass-cache/src/scan/shape/"];

pub(super) fn check(report: &mut Report) -> Result {
    for extension in ["md", "rs"] {
        for path in files(project::root(), extension)? {
            let name = shown(&path);
            if EXCLUDED.iter().any(|folder| name.starts_with(folder)) {
                continue;
            }
            let text = read(&path)?;
            let lines = if extension == "md" { Page::parse(&text).prose } else { comments(&text) };
            for (line, phrase, advice) in phrases(&lines) {
                report.errors.push(format!("{name}:{line}: `{phrase}` is hard to read; {advice}"));
            }
        }
    }
    Ok(())
}

/// Returns the comments of a Rust file with the line numbers. A comment after code counts if a space is before the comment.
fn comments(text: &str) -> Vec<(usize, &str)> {
    let start = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        if line[indent..].starts_with("//") { Some(indent) } else { line.find(" // ") }
    };
    (1..).zip(text.lines()).filter_map(|(number, line)| Some((number, &line[start(line)?..]))).collect()
}

/// Returns the line, phrase and advice of every hit.
fn phrases(lines: &[(usize, &str)]) -> Vec<(usize, &'static str, &'static str)> {
    let mut found = Vec::new();
    for (number, line) in lines {
        let line = line.to_lowercase();
        let hits = PHRASES.iter().filter(|(phrase, _)| contains(&line, phrase));
        found.extend(hits.map(|(phrase, advice)| (*number, *phrase, *advice)));
    }
    found
}

/// Returns whether a line contains a phrase as whole words.
fn contains(line: &str, phrase: &str) -> bool {
    let is_boundary = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    line.match_indices(phrase).any(|(start, _)| {
        is_boundary(line[..start].chars().next_back())
            && is_boundary(line[start + phrase.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::{comments, phrases};

    #[test]
    fn phrases_in_comments_are_found_with_their_lines() {
        let mark = "//";
        let text = format!(
            "{mark}/ Whoever calls this.\nlet nobody = 1;\nlet a = \"nobody\"; {mark} Nobody knows.\n{mark} somebodys\n"
        );
        let lines = comments(&text);
        let found: Vec<_> = phrases(&lines).iter().map(|(line, phrase, _)| (*line, *phrase)).collect();
        assert_eq!(found, [(1, "whoever"), (3, "nobody")]);
    }
}
