//! Marks: places in an object where lines of a template replace a field.

use serde_json::{Value, json};

use crate::manifests::yaml::document_text;

/// The beginning of a mark. No field of an object begins with this text.
const MARK: &str = "windlass-chart-mark-";

/// The key of a mark that adds lines to a mapping.
const MORE: &str = "zz-windlass-chart-more";

/// The lines of a template, by the number of the mark.
#[derive(Default)]
pub(super) struct Marks(Vec<Vec<String>>);

impl Marks {
    /// Returns the value of a field that the lines replace. The lines have the key, too. `+N` behind `nindent` is relative to the key.
    pub(super) fn add(&mut self, lines: Vec<String>) -> Value {
        self.0.push(lines);
        json!(format!("{MARK}{}", self.0.len() - 1))
    }

    /// Adds lines to a mapping, after the other keys.
    pub(super) fn extend(&mut self, mapping: &mut Value, lines: Vec<String>) {
        if !lines.is_empty() {
            mapping[MORE] = self.add(lines);
        }
    }

    /// Adds lines to the annotations of an object.
    pub(super) fn annotate(&mut self, object: &mut Value, lines: Vec<String>) {
        self.extend(&mut object["metadata"]["annotations"], lines);
    }

    /// Returns an object as the text of a template. Braces in the texts of the object are not expressions.
    pub(super) fn text(&self, object: &Value) -> String {
        let mut text = String::new();
        for line in document_text(object).lines() {
            if let Some((prefix, lines)) = self.lines_of(line) {
                push_lines(&mut text, prefix, lines);
            } else {
                text.push_str(&line.replace("{{", "{{ \"{{\" }}"));
                text.push('\n');
            }
        }
        text
    }

    /// Returns the text before the key of a marked line, and the lines of the mark.
    fn lines_of<'a>(&self, line: &'a str) -> Option<(&'a str, &[String])> {
        let (before, number) = line.split_once(MARK)?;
        let key = before.trim_end().strip_suffix(':')?;
        let start = key.rfind(' ').map_or(0, |space| space + 1);
        Some((&line[..start], self.0.get(number.trim().parse::<usize>().ok()?)?))
    }
}

fn push_lines(text: &mut String, prefix: &str, lines: &[String]) {
    let indent = " ".repeat(prefix.len());
    for (index, line) in lines.iter().enumerate() {
        // The dash of a list's item is before the first key.
        text.push_str(if index == 0 { prefix } else { &indent });
        text.push_str(&absolute_indent(line, prefix.len()));
        text.push('\n');
    }
}

/// Replaces `nindent +N` by the number of spaces from the start of the line.
fn absolute_indent(line: &str, indent: usize) -> String {
    let Some((before, rest)) = line.split_once("nindent +") else { return line.to_owned() };
    let digits = rest.chars().take_while(char::is_ascii_digit).count();
    let relative: usize = rest[..digits].parse().unwrap_or_default();
    format!("{before}nindent {}{}", indent + relative, &rest[digits..])
}

/// Returns the lines of a field that is absent if the value at `path` is empty.
pub(super) fn with(key: &str, path: &str) -> Vec<String> {
    vec![
        format!("{{{{- with {path} }}}}"),
        format!("{key}:"),
        "  {{- toYaml . | nindent +2 }}".to_owned(),
        "{{- end }}".to_owned(),
    ]
}

/// Returns lines with the items or keys of the value at `path`, if the value is not empty.
pub(super) fn items(path: &str) -> Vec<String> {
    vec![
        format!("{{{{- with {path} }}}}"),
        "{{- toYaml . | nindent +0 }}".to_owned(),
        "{{- end }}".to_owned(),
    ]
}
