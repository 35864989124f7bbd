//! The order of elements in the merge of two associative lists.

use serde_json::Value;

use super::super::atom::ListAtom;
use super::super::list_key::Keyed;
use super::super::problem::{Problems, Walk};

/// An element of the merged list: the positions in the object and in the configuration.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Also `None` if the object has several elements with the key: such elements are replaced.
    pub(super) old: Option<usize>,
    pub(super) new: Option<usize>,
}

/// Returns the elements of a merged list in order, or `None` if a list is invalid.
pub(super) fn merged_order(
    list: ListAtom<'_>,
    base: &[Value],
    config: &[Value],
    walk: &Walk<'_>,
    problems: &mut Problems,
) -> Option<Vec<Place>> {
    let errors = problems.len();
    let mut index = |items| {
        Keyed::new(list, items, |index, problem| {
            problems.add(walk, || format!("element {index}: {problem}"));
        })
    };
    let (config, base) = (index(config), index(base));
    for group in config.groups().filter(|group| group.len() > 1) {
        problems.add(walk, || format!("duplicate entries for key {}", config.key(group).to_element()));
    }
    if problems.len() > errors {
        return None;
    }
    if base.is_parallel(&config) {
        return Some(
            (0..base.items.len()).map(|index| Place { old: Some(index), new: Some(index) }).collect(),
        );
    }
    Some(Order::new(&base, &config).merge())
}

/// An element of the configuration.
#[derive(Clone, Copy, Default)]
struct New {
    /// The position of the object's element with the same key, if there is exactly one such element.
    old: Option<usize>,
    /// True if the object has elements with the same key.
    shared: bool,
    merged: bool,
}

struct Order {
    /// For each element of the object the position in the configuration of the element with the same key.
    old: Vec<Option<usize>>,
    new: Vec<New>,
    out: Vec<Place>,
}

impl Order {
    /// Finds the elements with the same key. Both sequences of groups are sorted by key.
    fn new(base: &Keyed<'_>, config: &Keyed<'_>) -> Self {
        let mut old = vec![None; base.items.len()];
        let mut new = vec![New::default(); config.items.len()];
        let mut wanted = config.groups().peekable();
        for group in base.groups() {
            while wanted.next_if(|other| config.key(other) < base.key(group)).is_some() {}
            let Some(&[place, ..]) = wanted.next_if(|other| config.key(other) == base.key(group)) else {
                continue;
            };
            group.iter().for_each(|&index| old[index] = Some(place));
            new[place].shared = true;
            new[place].old = if let &[only] = group { Some(only) } else { None };
        }
        let out = Vec::with_capacity(old.len() + new.len());
        Self { old, new, out }
    }

    /// Walks both lists at once. Elements of only the object are written when reached. Elements of both lists
    /// are written in the order of the configuration, and skipped where the object's order differs.
    fn merge(mut self) -> Vec<Place> {
        let (mut left, mut right) = (0, 0);
        // The next element of the configuration that the object has too.
        let mut shared = self.shared_from(0);
        while left < self.old.len() || right < self.new.len() {
            match self.old.get(left) {
                Some(Some(place)) if *place == right => {
                    self.take(right);
                    (left, right) = (left + 1, right + 1);
                    shared = shared.and_then(|shared| self.shared_from(shared + 1));
                    continue;
                }
                Some(Some(place))
                    if right < self.new.len() && shared.is_some_and(|shared| shared != *place) =>
                {
                    left += 1;
                    continue;
                }
                Some(Some(place)) => left += usize::from(self.new[*place].merged),
                Some(None) => {
                    self.out.push(Place { old: Some(left), new: None });
                    left += 1;
                    continue;
                }
                None => {}
            }
            if right < self.new.len() {
                self.take(right);
                if shared == Some(right) {
                    shared = self.shared_from(right + 1);
                }
                right += 1;
            }
        }
        self.out
    }

    fn shared_from(&self, start: usize) -> Option<usize> {
        (start..self.new.len()).find(|&index| self.new[index].shared)
    }

    fn take(&mut self, index: usize) {
        let new = &mut self.new[index];
        new.merged = true;
        self.out.push(Place { old: new.old, new: Some(index) });
    }
}
