//! Checks that each row of docs/parity.md names a test, and that the tests exist.

use std::collections::BTreeSet;
use std::path::Path;

use super::Report;
use super::files::{read, rust_files, shown};
use crate::{Result, project};

const PAGE: &str = "docs/parity.md";

/// A row with this cell needs no test.
const MISSING: &str = "not offered";

pub(super) fn check(report: &mut Report) -> Result {
    let root = project::root();
    let mut tests = Tests::default();
    for folder in ["crates", "examples"] {
        for path in rust_files(&root.join(folder))? {
            tests.add(&shown(&path), &read(&path)?);
        }
    }
    let text = read(&root.join(PAGE))?;
    report.errors.extend(rows(&text).filter_map(|(line, cells)| {
        let problem = tests.problem(&cells)?;
        Some(format!("{PAGE}:{line}: {problem}"))
    }));
    Ok(())
}

/// Returns the rows of tables with `test` as the last column, with line numbers.
fn rows(text: &str) -> impl Iterator<Item = (usize, Vec<String>)> {
    let mut in_table = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if !line.starts_with('|') {
            in_table = false;
            return None;
        }
        let cells = cells(line);
        let of_table = in_table && !line.starts_with("|---");
        in_table |= cells.last().is_some_and(|cell| cell == "test");
        of_table.then_some((index + 1, cells))
    })
}

fn cells(line: &str) -> Vec<String> {
    let escaped = line.replace("\\|", "\u{0}");
    let inner = escaped.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect()
}

/// The tests of the workspace and the files of the tests.
#[derive(Default)]
struct Tests {
    names: BTreeSet<String>,
    /// Paths of files with `/` before and after.
    files: Vec<String>,
}

impl Tests {
    fn add(&mut self, path: &str, source: &str) {
        self.files.push(format!("/{path}/"));
        let mut marked = false;
        for line in source.lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                marked = true;
            } else if let Some((_, rest)) = line.split_once("fn ")
                && std::mem::take(&mut marked)
            {
                let name = rest.split(['(', '<']).next().unwrap_or(rest);
                self.names.insert(name.to_owned());
            }
        }
    }

    /// Returns the problem of the last cell of a row.
    fn problem(&self, cells: &[String]) -> Option<String> {
        let cell = cells.last()?;
        let spans: Vec<&str> = cell.split('`').skip(1).step_by(2).collect();
        if spans.is_empty() && !cells.iter().any(|cell| cell.contains(MISSING)) {
            return Some(format!("{}: name its test, or write `{MISSING}`", cells[0]));
        }
        let names = spans.iter().flat_map(|span| span.split(": ")).flat_map(|span| span.split(", "));
        let unknown = names.filter(|name| !self.has(name)).map(|name| format!("`{name}`"));
        let unknown: Vec<String> = unknown.collect();
        (!unknown.is_empty()).then(|| format!("{}: no test or file {}", cells[0], unknown.join(", ")))
    }

    /// Returns whether there is such a test, with modules or without, or such a file, folder or module.
    fn has(&self, name: &str) -> bool {
        if name.contains('/') || Path::new(name).extension().is_some_and(|extension| extension == "rs") {
            let part = format!("{}/", name.trim_end_matches('/'));
            // `runtime/src` is short for `crates/windlass-runtime/src`.
            let ends = [format!("/{part}"), format!("-{part}")];
            return self.files.iter().any(|file| ends.iter().any(|end| file.contains(end.as_str())));
        }
        let name = name.trim_end_matches("::*");
        let last = name.rsplit("::").next().unwrap_or(name);
        let module = |ending: &str| self.files.iter().any(|file| file.contains(&format!("/{last}{ending}/")));
        self.names.contains(last) || module(".rs") || module("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(page: &str) -> Vec<(usize, String)> {
        let mut tests = Tests::default();
        tests.add(
            "crates/windlass-runtime/tests/it/write.rs",
            "#[tokio::test]\nasync fn a_status_is_written() {}\nfn helper() {}\n",
        );
        rows(page).filter_map(|(line, cells)| Some((line, tests.problem(&cells)?))).collect()
    }

    #[test]
    fn a_row_names_a_test_that_exists() {
        let page = "| a | here | test |\n|---|---|---|\n\
            | `x \\| y` | z | `write.rs`: `a_status_is_written`; `runtime/tests/it/` |\n\
            | b | z | `write::a_status_is_written`, `it` |\n| c | not offered | |\n\
            | d | z | |\n| e | z | `helper`, `write.rs: gone` |\n\n| other | table |\n|---|---|\n| f | |\n";
        assert_eq!(
            problems(page),
            [
                (6, "d: name its test, or write `not offered`".to_owned()),
                (7, "e: no test or file `helper`, `gone`".to_owned())
            ]
        );
    }
}
