//! Set operations.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Entry, FieldSet};

/// Pairs of entries of two sets: both entries with the same element, or an entry of only one set.
struct Pairs<'s> {
    left: &'s [Entry],
    right: &'s [Entry],
}

impl<'s> Iterator for Pairs<'s> {
    type Item = (Option<&'s Entry>, Option<&'s Entry>);

    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.left.first(), self.right.first()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(left), Some(right)) => left.element.cmp(&right.element),
        };
        let left = if order.is_le() { self.left.split_off_first() } else { None };
        let right = if order.is_ge() { self.right.split_off_first() } else { None };
        Some((left, right))
    }
}

impl FieldSet {
    fn is_same(&self, other: &Self) -> bool {
        match (&self.entries, &other.entries) {
            (Some(left), Some(right)) => Arc::ptr_eq(left, right),
            (left, right) => left.is_none() && right.is_none(),
        }
    }

    fn pairs<'s>(&'s self, other: &'s Self) -> Pairs<'s> {
        Pairs { left: self.entries(), right: other.entries() }
    }

    /// Returns the paths that are in either set.
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() || self.is_same(other) {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        let mut entries = Vec::with_capacity(self.entries().len().max(other.entries().len()));
        entries.extend(self.pairs(other).filter_map(|pair| match pair {
            (Some(left), Some(right)) => Some(Entry {
                element: left.element.clone(),
                member: left.member || right.member,
                below: left.below.union(&right.below),
            }),
            (left, right) => left.or(right).cloned(),
        }));
        Self::of_sorted(entries)
    }

    /// Returns the paths that are in any of the sets. Each path is copied a few times only, even of very many sets.
    pub fn union_of(sets: &[&Self]) -> Self {
        match sets {
            [] => Self::default(),
            [only] => (*only).clone(),
            _ => {
                let (left, right) = sets.split_at(sets.len() / 2);
                Self::union_of(left).union(&Self::union_of(right))
            }
        }
    }

    /// Returns whether a look-up of each entry of this set in `other` takes fewer steps than a walk of both
    /// sets.
    fn is_much_smaller(&self, other: &Self) -> bool {
        self.entries().len() * 16 < other.entries().len()
    }

    /// Returns each entry of this set with the entry of `other` for the same element.
    fn matched<'s>(
        &'s self,
        other: &'s Self,
    ) -> impl Iterator<Item = (&'s Entry, Option<&'s Entry>)> + use<'s> {
        let small = self.is_much_smaller(other);
        let found = self.entries()[..if small { self.entries().len() } else { 0 }].iter();
        let found = found.map(move |left| (left, other.find(&left.element)));
        let both = if small { Pairs { left: &[], right: &[] } } else { self.pairs(other) };
        found.chain(both.filter_map(|(left, right)| Some((left?, right))))
    }

    /// Returns the paths that are in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        if self.is_empty() || other.is_empty() {
            return Self::default();
        }
        if self.is_same(other) {
            return self.clone();
        }
        if other.is_much_smaller(self) {
            return other.intersection(self);
        }
        let entries = self.matched(other).filter_map(|(left, right)| {
            let right = right?;
            let member = left.member && right.member;
            let below = left.below.intersection(&right.below);
            (member || !below.is_empty()).then(|| Entry { element: left.element.clone(), member, below })
        });
        Self::of_sorted(entries.collect())
    }

    /// Returns the paths that are in this set and not in `other`. Paths below a path of `other` stay.
    pub fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        if self.is_same(other) {
            return Self::default();
        }
        let entries = self.matched(other).filter_map(|(left, right)| {
            let Some(right) = right else { return Some(left.clone()) };
            let member = left.member && !right.member;
            let below = left.below.difference(&right.below);
            (member || !below.is_empty()).then(|| Entry { element: left.element.clone(), member, below })
        });
        Self::of_sorted(entries.collect())
    }

    /// Returns the paths of this set that neither are in `other` nor start with a path of `other`.
    pub fn recursive_difference(&self, other: &Self) -> Self {
        if other.is_empty() || self.is_empty() {
            return self.clone();
        }
        let entries = self.pairs(other).filter_map(|(left, right)| {
            let left = left?;
            let Some(right) = right else { return Some(left.clone()) };
            if right.member {
                return None;
            }
            let below = left.below.recursive_difference(&right.below);
            let member = left.member;
            (member || !below.is_empty()).then(|| Entry { element: left.element.clone(), member, below })
        });
        Self::of_sorted(entries.collect())
    }

    /// Returns the paths that are not the start of another path in the set.
    pub fn leaves(&self) -> Self {
        let entries = self.entries().iter().map(|entry| Entry {
            element: entry.element.clone(),
            member: entry.member && entry.below.is_empty(),
            below: entry.below.leaves(),
        });
        Self::of_sorted(entries.collect())
    }
}
