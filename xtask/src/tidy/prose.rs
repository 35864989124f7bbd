//! Counts how often the comments and pages of each folder refer back instead of naming the object.

use std::collections::BTreeMap;
use std::path::Path;

use super::Report;
use super::files::{files, read, shown};
use super::sentences::{Count, Reader};
use crate::{Result, project};

/// The table of the folders that have not reached the goal.
const TABLE: &str = include_str!("prose.txt");
const TABLE_NAME: &str = "xtask/src/tidy/prose.txt";

/// The ceilings of a folder without a line in the table.
const GOAL: Ceilings = Ceilings { back_references: 3.0, questions: 1.0 };

/// The steps in which a ceiling falls.
const STEP: f64 = 0.5;

/// The distance below the next step at which a ceiling must fall. The distance leaves room for other changes.
const MARGIN: f64 = 0.2;

/// The number of sentences that `--hardest` prints.
const HARDEST: usize = 40;

/// The largest allowed counts of one folder.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ceilings {
    /// For each 100 words.
    back_references: f64,
    /// In percent of the sentences.
    questions: f64,
}

pub(super) fn check(report: &mut Report) -> Result {
    let table = parse(TABLE)?;
    let counts = count()?;
    for folder in table.keys().filter(|folder| !counts.contains_key(**folder)) {
        report.errors.push(format!("{TABLE_NAME}: {folder} has no prose; remove the line"));
    }
    for (folder, count) in counts {
        report.errors.extend(judge(&folder, count, table.get(folder.as_str()).copied()));
    }
    Ok(())
}

/// Prints the sentences below a path that refer back most, with their files.
pub(super) fn print_hardest(path: &Path) -> Result {
    let path = shown(path);
    let reader = Reader::new()?;
    let mut found = Vec::new();
    for (name, text) in texts(&reader)? {
        if Path::new(&name).starts_with(&path) {
            let sentences = reader.sentences(&text).into_iter();
            found.extend(sentences.map(|sentence| (reader.count(&sentence), name.clone(), sentence)));
        }
    }
    let share =
        |count: Count| f64::from(count.back_references + count.questions) / f64::from(count.words.max(8));
    found.sort_by(|(a, ..), (b, ..)| share(*b).total_cmp(&share(*a)));
    for (_, name, sentence) in found.iter().take(HARDEST) {
        println!("{name}: {sentence}");
    }
    Ok(())
}

/// Returns the counts of each folder.
fn count() -> Result<BTreeMap<String, Count>> {
    let reader = Reader::new()?;
    let mut counts = BTreeMap::<String, Count>::new();
    for (name, text) in texts(&reader)? {
        let total = counts.entry(folder(&name)).or_default();
        for sentence in reader.sentences(&text) {
            *total += reader.count(&sentence);
        }
    }
    Ok(counts)
}

/// Returns the prose of every file with comments or text, generated files excepted, with the name of the file.
fn texts(reader: &Reader) -> Result<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for extension in ["md", "rs"] {
        for path in files(project::root(), extension)? {
            if path.components().any(|part| part.as_os_str() == "generated") {
                continue;
            }
            let text = read(&path)?;
            let prose = if extension == "md" { text } else { reader.comments(&text) };
            texts.push((shown(&path), prose));
        }
    }
    Ok(texts)
}

/// Returns the folder to which a file counts: a crate, another folder of the root, or a page of the root itself.
fn folder(name: &str) -> String {
    let depth = if name.starts_with("crates/") || name.starts_with("examples/") { 2 } else { 1 };
    name.split('/').take(depth).collect::<Vec<_>>().join("/")
}

/// Parses lines of a folder and two ceilings. `#` begins a comment.
fn parse(table: &str) -> Result<BTreeMap<&str, Ceilings>> {
    let lines = table.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines
        .filter(|line| !line.is_empty())
        .map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
            [folder, back_references, questions] => {
                let ceiling = |text: &str| {
                    text.parse::<f64>().map_err(|error| format!("{TABLE_NAME}: {folder}: {text}: {error}"))
                };
                let (back_references, questions) = (ceiling(back_references)?, ceiling(questions)?);
                Ok((folder, Ceilings { back_references, questions }))
            }
            _ => Err(format!("{TABLE_NAME}: `{line}` is not a folder and two numbers").into()),
        })
        .collect()
}

/// Compares the counts of a folder with the ceilings of the folder's line in the table.
fn judge(folder: &str, count: Count, line: Option<Ceilings>) -> Vec<String> {
    let mut errors = Vec::new();
    let ceilings = line.unwrap_or(GOAL);
    let (back_references, questions) = (count.back_references_per_100_words(), count.percent_of_questions());
    if back_references > ceilings.back_references {
        errors.push(format!(
            "{folder}: {back_references:.2} back-references (it, its, one, those, what, …) for each 100 words, more than \
             {:.1}; repeat the noun. `cargo xtask tidy --hardest {folder}` prints the hardest sentences",
            ceilings.back_references
        ));
    }
    if questions > ceilings.questions && count.questions > 1 {
        errors.push(format!(
            "{folder}: {questions:.2} % of the sentences begin with What, Whether or Who, more than {:.1}; begin with \
             a noun or a verb. `cargo xtask tidy --hardest {folder}` prints the hardest sentences",
            ceilings.questions
        ));
    }
    let Some(ceilings) = line.filter(|_| errors.is_empty()) else { return errors };
    let lower = Ceilings {
        back_references: lowered(ceilings.back_references, back_references, GOAL.back_references),
        questions: lowered(ceilings.questions, questions, GOAL.questions),
    };
    if lower == GOAL {
        errors.push(format!("{TABLE_NAME}: {folder} has reached the goal; remove the line"));
    } else if lower != ceilings {
        let Ceilings { back_references, questions } = lower;
        errors.push(format!(
            "{TABLE_NAME}: lower the ceilings of {folder} to {back_references:.1} and {questions:.1}"
        ));
    }
    errors
}

/// Returns the smallest step that is the margin or more above `measured`, between the goal and the present ceiling.
fn lowered(ceiling: f64, measured: f64, goal: f64) -> f64 {
    let step = ((measured + MARGIN) / STEP).ceil() * STEP;
    step.max(goal).min(ceiling)
}

#[cfg(test)]
mod tests {
    use super::{Ceilings, Count, folder, judge, parse};

    /// Returns the counts of a folder with 1,000 words and 1,000 sentences.
    fn count(back_references: u32, questions: u32) -> Count {
        Count { words: 1000, back_references, sentences: 1000, questions }
    }

    fn line(back_references: f64, questions: f64) -> Ceilings {
        Ceilings { back_references, questions }
    }

    #[test]
    fn a_folder_without_a_line_has_the_goal() {
        assert_eq!(judge("docs", count(30, 10), None), [""; 0]);
        let [error] = &judge("docs", count(31, 10), None)[..] else { panic!("one error") };
        assert!(error.starts_with("docs: 3.10 back-references"), "{error}");
        let [error] = &judge("docs", count(30, 20), None)[..] else { panic!("one error") };
        assert!(error.starts_with("docs: 2.00 % of the sentences begin"), "{error}");
    }

    #[test]
    fn a_small_folder_may_have_one_question() {
        let small = Count { words: 100, back_references: 0, sentences: 10, questions: 1 };
        assert_eq!(judge("features", small, None), [""; 0]);
    }

    #[test]
    fn a_ceiling_falls_in_steps_and_leaves_room() {
        assert_eq!(judge("xtask", count(57, 43), Some(line(6.0, 4.5))), [""; 0]);
        assert_eq!(
            judge("xtask", count(54, 43), Some(line(6.0, 4.5))),
            [""; 0],
            "0.1 below the next step is too near"
        );
        assert_eq!(
            judge("xtask", count(53, 43), Some(line(6.0, 4.5))),
            ["xtask/src/tidy/prose.txt: lower the ceilings of xtask to 5.5 and 4.5"]
        );
        assert_eq!(
            judge("xtask", count(20, 14), Some(line(6.0, 4.5))),
            ["xtask/src/tidy/prose.txt: lower the ceilings of xtask to 3.0 and 2.0"]
        );
    }

    #[test]
    fn a_line_ends_at_the_goal() {
        assert_eq!(
            judge("xtask", count(28, 0), Some(line(3.5, 1.0))),
            ["xtask/src/tidy/prose.txt: xtask has reached the goal; remove the line"]
        );
        assert_eq!(judge("xtask", count(29, 0), Some(line(3.5, 1.0))), [""; 0]);
    }

    #[test]
    fn files_count_to_their_crate_or_folder() {
        let cases = [
            ("crates/windlass-node/src/a/b.rs", "crates/windlass-node"),
            ("examples/network/src/lib.rs", "examples/network"),
            ("docs/a/b.md", "docs"),
            ("README.md", "README.md"),
        ];
        for (name, expected) in cases {
            assert_eq!(folder(name), expected);
        }
    }

    #[test]
    fn the_table_has_comments_and_refuses_other_lines() {
        let table = parse("# folder\n\ndocs 3.5 1.0\n").unwrap();
        assert_eq!(table, [("docs", Ceilings { back_references: 3.5, questions: 1.0 })].into());
        for line in ["docs 3.5", "docs 3.5 many"] {
            parse(line).unwrap_err();
        }
    }
}
