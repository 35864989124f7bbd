//! Parses the parts of Markdown pages that the checks need: code spans, fenced blocks and markers before
//! fenced blocks.

/// A page in Markdown.
#[derive(Debug, Default)]
pub(super) struct Page<'t> {
    pub(super) spans: Vec<Span<'t>>,
    pub(super) blocks: Vec<Block<'t>>,
    /// The lines outside of fenced blocks, with line numbers.
    pub(super) prose: Vec<(usize, &'t str)>,
}

/// A code span, outside of fenced blocks. Spans do not cross the end of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Span<'t> {
    /// From 1.
    pub(super) line: usize,
    /// The line of the header row, if the span is in a table.
    pub(super) header: Option<usize>,
    pub(super) text: &'t str,
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block<'t> {
    /// The line of the opening fence, from 1.
    pub(super) line: usize,
    /// The language and attributes after the opening fence, separated by commas: `rust,ignore`.
    pub(super) info: &'t str,
    /// The content of an HTML comment before the fence; blank lines after the comment are allowed.
    pub(super) marker: Option<&'t str>,
    pub(super) lines: Vec<&'t str>,
}

const FENCE: &str = "```";

impl<'t> Page<'t> {
    pub(super) fn parse(text: &'t str) -> Self {
        let mut page = Self::default();
        let (mut marker, mut header) = (None, None);
        let mut lines = text.lines().zip(1..);
        while let Some((line, number)) = lines.next() {
            let trimmed = line.trim();
            if let Some(info) = trimmed.strip_prefix(FENCE) {
                let body = lines.by_ref().map(|(line, _)| line);
                let body = body.take_while(|line| line.trim() != FENCE).collect();
                page.blocks.push(Block {
                    line: number,
                    info: info.trim(),
                    marker: marker.take(),
                    lines: body,
                });
                continue;
            }
            page.prose.push((number, line));
            if trimmed.is_empty() {
                header = None;
                continue;
            }
            marker = trimmed.strip_prefix("<!--").and_then(|rest| rest.strip_suffix("-->")).map(str::trim);
            if !trimmed.starts_with('|') {
                header = None;
            }
            let spans = spans_of(line).map(|text| Span { line: number, header, text });
            page.spans.extend(spans);
            if trimmed.starts_with('|') {
                header = header.or(Some(number));
            }
        }
        page
    }
}

impl Block<'_> {
    /// Returns whether the block is labelled as Rust.
    pub(super) fn is_rust(&self) -> bool {
        self.words().next() == Some("rust")
    }

    pub(super) fn has(&self, attribute: &str) -> bool {
        self.words().any(|word| word == attribute)
    }

    fn words(&self) -> impl Iterator<Item = &str> {
        self.info.split([',', ' ']).filter(|word| !word.is_empty())
    }
}

/// Returns the texts between pairs of backticks; an unpaired backtick is ignored.
fn spans_of(line: &str) -> impl Iterator<Item = &str> {
    let pairs = line.matches('`').count() / 2;
    line.split('`').skip(1).step_by(2).take(pairs).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{Block, Page};

    #[test]
    fn spans_know_their_line_and_table() {
        let page = Page::parse("a `b` and `c` and ` d\n\n| in `base` | x |\n|---|---|\n| `e/` | |\n\n`f`\n");
        let spans: Vec<_> = page.spans.iter().map(|span| (span.text, span.line, span.header)).collect();
        assert_eq!(
            spans,
            [("b", 1, None), ("c", 1, None), ("base", 3, None), ("e/", 5, Some(3)), ("f", 7, None)]
        );
    }

    #[test]
    fn blocks_know_their_marker_and_attributes() {
        let text = "<!-- a.rs -->\n\n```rust,ignore\nlet `a` = 1;\n```\ntext\n```\nplain\n```\n";
        let page = Page::parse(text);
        assert!(page.spans.is_empty(), "{:?}", page.spans);
        let [first, second] = &page.blocks[..] else { panic!("two blocks: {:?}", page.blocks) };
        assert_eq!(
            *first,
            Block { line: 3, info: "rust,ignore", marker: Some("a.rs"), lines: vec!["let `a` = 1;"] }
        );
        assert!(first.is_rust() && first.has("ignore"));
        assert_eq!((second.line, second.marker, second.is_rust()), (7, None, false));
    }

    #[test]
    fn a_marker_belongs_to_the_next_block_only() {
        let page =
            Page::parse("<!-- a.rs -->\n```rust\n```\n```rust\n```\n<!-- b.rs -->\ntext\n```rust\n```\n");
        let markers: Vec<_> = page.blocks.iter().map(|block| block.marker).collect();
        assert_eq!(markers, [Some("a.rs"), None, None]);
    }
}
