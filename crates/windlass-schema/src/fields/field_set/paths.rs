//! Iterates over the paths of a set.

use super::{Entry, FieldSet};
use crate::fields::path_element::{FieldPath, PathElement};

/// An iterator over the paths of a set.
pub(super) struct Paths<'s> {
    /// The elements that lead to the innermost level.
    prefix: Vec<&'s PathElement>,
    levels: Vec<Level<'s>>,
}

/// The entries of an object or list.
struct Level<'s> {
    entries: &'s [Entry],
    next: usize,
    /// True if the members have been returned, and the entries are visited again for deeper paths.
    descending: bool,
}

impl<'s> Paths<'s> {
    pub(super) fn new(set: &'s FieldSet) -> Self {
        let mut paths = Self { prefix: Vec::new(), levels: Vec::new() };
        paths.enter(set);
        paths
    }

    fn enter(&mut self, set: &'s FieldSet) {
        self.levels.push(Level { entries: set.entries(), next: 0, descending: false });
    }
}

impl Iterator for Paths<'_> {
    type Item = FieldPath;

    fn next(&mut self) -> Option<FieldPath> {
        loop {
            let level = self.levels.last_mut()?;
            let Some(entry) = level.entries.get(level.next) else {
                if level.descending {
                    self.levels.pop();
                    self.prefix.pop();
                } else {
                    (level.descending, level.next) = (true, 0);
                }
                continue;
            };
            level.next += 1;
            if !level.descending && entry.member {
                return Some(self.prefix.iter().copied().chain([&entry.element]).cloned().collect());
            }
            if level.descending && !entry.below.is_empty() {
                self.prefix.push(&entry.element);
                self.enter(&entry.below);
            }
        }
    }
}
