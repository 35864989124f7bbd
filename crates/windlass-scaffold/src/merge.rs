//! The three-way merge of a file: the scaffolded text, the user's text, and the new text of the template.

use diffy::{ConflictStyle, MergeOptions};

/// The outcome of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    /// All changes fit together.
    Clean(String),
    /// Some changes are of the same lines: both are in the text, between the marks of git.
    Conflict(String),
}

/// Merges the changes from `base` to `ours` (the user's text) with the changes from `base` to `theirs` (the
/// template's text).
pub(crate) fn three_way(base: &str, ours: &str, theirs: &str) -> Merged {
    if ours == base || ours == theirs {
        return Merged::Clean(theirs.to_owned());
    }
    if base == theirs {
        return Merged::Clean(ours.to_owned());
    }
    let mut options = MergeOptions::new();
    options.set_conflict_style(ConflictStyle::Merge);
    match options.merge(base, ours, theirs) {
        Ok(text) => Merged::Clean(text),
        Err(text) => Merged::Conflict(text),
    }
}

#[cfg(test)]
mod tests {
    use super::{Merged, three_way};

    #[test]
    fn changes_of_different_lines_fit_together() {
        let merged = three_way("a\nb\nc\nd\ne\n", "A\nb\nc\nd\ne\n", "a\nb\nc\nd\nE\n");
        assert_eq!(merged, Merged::Clean("A\nb\nc\nd\nE\n".to_owned()));
    }

    #[test]
    fn changes_of_the_same_line_are_both_kept() {
        let Merged::Conflict(text) = three_way("a\n", "ours\n", "theirs\n") else { panic!("a conflict") };
        assert_eq!(text, "<<<<<<< ours\nours\n=======\ntheirs\n>>>>>>> theirs\n");
    }

    #[test]
    fn a_change_of_one_side_is_taken() {
        assert_eq!(three_way("a\n", "a\n", "b\n"), Merged::Clean("b\n".to_owned()));
        assert_eq!(three_way("a\n", "b\n", "a\n"), Merged::Clean("b\n".to_owned()));
    }
}
