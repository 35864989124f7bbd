//! The order in which the elements of two associative lists are merged.

use serde_json::Value;

use super::super::atom::ListAtom;
use super::super::list_key::Keyed;
use super::super::problem::{Problems, Walk};

/// A list element to write: what the object and the configuration have of it.
type Pair<'v> = (Option<&'v Value>, Option<&'v Value>);

/// Stands for elements of the object that have the same key: they are not merged but replaced.
const REPLACED: &Value = &Value::Null;

/// An element of the object.
struct Old<'v> {
    value: &'v Value,
    /// The position in the configuration of the element with the same key.
    place: Option<usize>,
}

/// An element of the configuration.
struct New<'v> {
    value: &'v Value,
    /// What the object has of it.
    old: Option<&'v Value>,
    merged: bool,
}

/// Returns the elements of a merged list in their order, or `None` if a list is invalid.
pub(super) fn pairs<'v>(
    list: ListAtom<'_>,
    base: &'v [Value],
    config: &'v [Value],
    walk: &Walk<'_>,
    problems: &mut Problems,
) -> Option<Vec<Pair<'v>>> {
    let errors = problems.len();
    let mut index = |items: &'v [Value]| {
        Keyed::new(list, items, |index, problem| {
            problems.add(walk, || format!("element {index}: {problem}"));
        })
    };
    let (config, base) = (index(config), index(base));
    for group in config.groups().filter(|group| group.len() > 1) {
        problems.add(walk, || format!("duplicate entries for key {}", config.key(group)));
    }
    if problems.len() > errors {
        return None;
    }
    let (old, new) = matched(&base, &config);
    Some(Order { old, new, out: Vec::with_capacity(base.items.len() + config.items.len()) }.merge())
}

/// Finds the elements with the same key. Both sequences of groups are sorted by key.
fn matched<'v>(base: &Keyed<'v>, config: &Keyed<'v>) -> (Vec<Old<'v>>, Vec<New<'v>>) {
    let mut old: Vec<Old<'_>> = base.items.iter().map(|(_, value)| Old { value, place: None }).collect();
    let mut new: Vec<New<'_>> =
        config.items.iter().map(|(_, value)| New { value, old: None, merged: false }).collect();
    let mut wanted = config.groups().peekable();
    for group in base.groups() {
        while wanted.next_if(|other| config.key(other) < base.key(group)).is_some() {}
        let Some(place) = wanted.next_if(|other| config.key(other) == base.key(group)) else { continue };
        let place = place[0];
        group.iter().for_each(|&index| old[index].place = Some(place));
        new[place].old = Some(if let &[only] = group { old[only].value } else { REPLACED });
    }
    (old, new)
}

struct Order<'v> {
    old: Vec<Old<'v>>,
    new: Vec<New<'v>>,
    out: Vec<Pair<'v>>,
}

impl<'v> Order<'v> {
    /// Walks both lists at once. Elements that only the object has are written where they are met. Elements that both
    /// have are written in the order of the configuration; where the object's order differs, they are skipped.
    fn merge(mut self) -> Vec<Pair<'v>> {
        let (mut left, mut right) = (0, 0);
        // The next element of the configuration that the object has too.
        let mut shared = self.shared_from(0);
        while left < self.old.len() || right < self.new.len() {
            if let Some(old) = self.old.get(left) {
                match old.place {
                    Some(place) if place == right => {
                        self.take(right);
                        (left, right) = (left + 1, right + 1);
                        shared = shared.and_then(|shared| self.shared_from(shared + 1));
                        continue;
                    }
                    Some(place) if right < self.new.len() && shared.is_some_and(|shared| shared != place) => {
                        left += 1;
                        continue;
                    }
                    Some(place) => left += usize::from(self.new[place].merged),
                    None => {
                        self.out.push((Some(old.value), None));
                        left += 1;
                        continue;
                    }
                }
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
        (start..self.new.len()).find(|&index| self.new[index].old.is_some())
    }

    fn take(&mut self, index: usize) {
        let new = &mut self.new[index];
        new.merged = true;
        self.out.push((new.old, Some(new.value)));
    }
}
