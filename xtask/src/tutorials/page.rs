//! A page as steps.

/// The words of a marker for a block that is a file.
const WRITES: &str = "writes it to ";

/// A reader's action.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Types commands, and sees these lines.
    Run { line: usize, commands: String, expected: Vec<String> },
    /// Writes a file.
    Write { line: usize, path: String, text: String },
}

impl Step {
    pub(super) fn line(&self) -> usize {
        match self {
            Self::Run { line, .. } | Self::Write { line, .. } => *line,
        }
    }
}

/// A page of the book.
pub(super) struct Page {
    pub(super) steps: Vec<Step>,
}

impl Page {
    /// Reads the blocks: `sh` is typed, `text` is the expected output, and a block in any other language is a
    /// file if the comment before the block says so.
    pub(super) fn parse(text: &str) -> Self {
        let mut steps: Vec<Step> = Vec::new();
        let mut lines = text.lines().enumerate();
        let mut path = None;
        while let Some((number, line)) = lines.next() {
            if let Some(info) = line.strip_prefix("```") {
                let body: Vec<&str> =
                    lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
                let text = body.join("\n") + "\n";
                match (info, path.take(), steps.last_mut()) {
                    ("sh", _, _) => {
                        steps.push(Step::Run { line: number + 1, commands: text, expected: Vec::new() });
                    }
                    ("text", _, Some(Step::Run { expected, .. })) => {
                        expected.extend(body.into_iter().map(str::to_owned));
                    }
                    (_, Some(path), _) => steps.push(Step::Write { line: number + 1, path, text }),
                    _ => {}
                }
            } else if let Some((_, rest)) = line.split_once(WRITES) {
                path = rest.split_whitespace().next().map(str::to_owned);
            } else if !line.trim().is_empty() {
                path = None;
            }
        }
        Self { steps }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_steps() {
        let page = "a\n```sh\nls\n```\n\n```text\nout\n```\n<!-- not compiled: x writes it to src/a.rs -->\n```rust\nfn a() {}\n```\n```rust\nb\n```\n";
        let steps = Page::parse(page).steps;
        let run = Step::Run { line: 2, commands: "ls\n".into(), expected: vec!["out".into()] };
        let write = Step::Write { line: 10, path: "src/a.rs".into(), text: "fn a() {}\n".into() };
        assert_eq!(steps, [run, write]);
    }
}
