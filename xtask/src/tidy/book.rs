//! Checks that every Rust block of README.md and docs/ is compiled: as a doc test, or as part of an example
//! with the same text. A block in another language is compared with the file in the block's marker.

use std::path::PathBuf;

use super::Report;
use super::files::{files, read, shown};
use super::markdown::{Block, Page};
use crate::{Result, project};

/// The file that includes the pages that are doc tests, with `include_str!`.
const DOC_TESTS: &str = "crates/windlass/src/book.rs";

/// The start of a marker that excuses a block.
const EXCUSE: &str = "not compiled:";

const HELP: &str = "put `<!-- path/of/an/example.rs -->` before the block, or \
                    `<!-- not compiled: the reason -->`, or include the page in crates/windlass/src/book.rs";

pub(super) fn check(report: &mut Report) -> Result {
    let root = project::root();
    let doc_tests = read(&root.join(DOC_TESTS))?;
    let source = |path: &str| read(&root.join(path)).ok();
    for path in pages()? {
        let name = shown(&path);
        let is_doc_test = doc_tests.contains(&format!("include_str!(\"../../../{name}\")"));
        for (line, what) in problems(&read(&path)?, is_doc_test, source) {
            report.errors.push(format!("{name}:{line}: {what}"));
        }
    }
    Ok(())
}

fn pages() -> Result<Vec<PathBuf>> {
    let mut pages = files(&project::root().join("docs"), "md")?;
    pages.push(project::root().join("README.md"));
    Ok(pages)
}

/// Returns the lines and errors of blocks that are not compiled. `source` reads a file of the workspace.
fn problems(text: &str, is_doc_test: bool, source: impl Fn(&str) -> Option<String>) -> Vec<(usize, String)> {
    let page = Page::parse(text);
    let checked =
        page.blocks.iter().filter_map(|block| Some((block.line, problem(block, is_doc_test, &source)?)));
    checked.collect()
}

fn problem(block: &Block, is_doc_test: bool, source: impl Fn(&str) -> Option<String>) -> Option<String> {
    if is_doc_test && block.info.is_empty() {
        return Some("rustdoc compiles a block without a language as Rust; write ```text or ```sh".into());
    }
    if !block.is_rust() {
        // Code in another language is checked if the marker names a file.
        let path = block.marker.filter(|marker| !marker.contains(' '))?;
        return difference(block, path, source(path));
    }
    match block.marker {
        Some(marker) if marker.starts_with(EXCUSE) => {
            let reason = marker[EXCUSE.len()..].trim();
            reason.is_empty().then(|| format!("`{EXCUSE}` needs a reason"))
        }
        Some(path) => difference(block, path, source(path)),
        None if is_doc_test && !block.has("ignore") => None,
        None if is_doc_test => Some(format!("this block is ignored without a reason; {HELP}")),
        None => Some(format!("this Rust block is not compiled; {HELP}")),
    }
}

/// Describes the difference between a block and the file in the block's marker.
fn difference(block: &Block, path: &str, source: Option<String>) -> Option<String> {
    let Some(source) = source else {
        return Some(format!("the marker names {path}, which does not exist; {HELP}"));
    };
    let line = first_difference(&block.lines, &source)?;
    Some(format!("differs from {path} at `{}`; copy the text of the example again", line.trim()))
}

/// Returns the first line of a block that differs from the source. White space and comments are ignored; a line `// …`
/// or `# …` matches any text.
fn first_difference<'b>(block: &[&'b str], source: &str) -> Option<&'b str> {
    let source = packed(source.lines());
    let mut rest = source.as_str();
    for passage in block.split(|line| is_ellipsis(line)) {
        let wanted = packed(passage.iter().copied());
        let Some(start) = rest.find(&wanted) else {
            let fits = |count: &usize| rest.contains(&packed(passage[..*count].iter().copied()));
            return passage.iter().zip(1..).find(|(_, count)| !fits(count)).map(|(line, _)| *line);
        };
        rest = &rest[start + wanted.len()..];
    }
    None
}

fn is_ellipsis(line: &str) -> bool {
    matches!(line.trim(), "// …" | "// ..." | "# …")
}

/// Joins lines without white space and without lines that are comments.
fn packed<'l>(lines: impl Iterator<Item = &'l str>) -> String {
    let code = lines.map(str::trim).filter(|line| !line.starts_with("//"));
    code.flat_map(str::chars).filter(|c| !c.is_whitespace()).collect()
}

#[cfg(test)]
mod tests {
    use super::problems;

    const EXAMPLE: &str =
        "use a::b;\n\n// Says why.\nfn main() {\n    first();\n    second().await;\n    third();\n}\n";

    fn of(text: &str, is_doc_test: bool) -> Vec<(usize, String)> {
        problems(text, is_doc_test, |path| (path == "a.rs").then(|| EXAMPLE.to_owned()))
    }

    fn assert_only(text: &str, is_doc_test: bool, line: usize, start: &str) {
        let problems = of(text, is_doc_test);
        let [(found, what)] = &problems[..] else { panic!("one problem: {problems:?}") };
        assert_eq!(*found, line);
        assert!(what.starts_with(start), "{what}");
    }

    #[test]
    fn blocks_that_something_compiles_pass() {
        let copied =
            "<!-- a.rs -->\n```rust\nfn main() {\n  first();\n  second()\n    .await;\n  third();\n}\n```\n";
        let shortened = "<!-- a.rs -->\n```rust,ignore\nuse a::b;\n// …\n  third();\n```\n";
        let excused = "<!-- not compiled: a sketch -->\n```rust\nlet x = …;\n```\n";
        for text in [copied, shortened, excused, "```text\nplain\n```\n", "```\nplain\n```\n"] {
            assert_eq!(of(text, false), [], "{text}");
        }
        assert_eq!(of("```rust\nlet x = 1;\n```\n", true), []);
        assert_eq!(of(shortened, true), []);
    }

    #[test]
    fn a_block_that_nothing_compiles_is_an_error() {
        assert_only(
            "text\n\n```rust\nlet x = 1;\n```\n",
            false,
            3,
            "this Rust block is not compiled; put `<!--",
        );
        assert_only("```rust,ignore\nlet x = 1;\n```\n", true, 1, "this block is ignored without a reason");
        assert_only("```\nplain\n```\n", true, 1, "rustdoc compiles a block without a language");
        assert_only("<!-- not compiled: -->\n```rust\n```\n", false, 2, "`not compiled:` needs a reason");
    }

    #[test]
    fn a_copy_that_differs_is_an_error_that_quotes_the_line() {
        assert_only(
            "<!-- a.rs -->\n```rust\nfn main() {\n    first();\n    changed();\n}\n```\n",
            false,
            2,
            "differs from a.rs at `changed();`",
        );
        assert_only(
            "<!-- b.rs -->\n```rust\nx\n```\n",
            false,
            2,
            "the marker names b.rs, which does not exist",
        );
        // In another language.
        let other = "<!-- a.rs -->\n```python\nchanged()\n```\n<!-- not a file -->\n```sh\nls\n```\n";
        assert_only(other, false, 2, "differs from a.rs at `changed()`");
        // In another order.
        let swapped = "<!-- a.rs -->\n```rust\nthird();\n// …\nfirst();\n```\n";
        assert_only(swapped, false, 2, "differs from a.rs at `first();`");
    }
}
