//! The free addresses of a pool, as ranges.

use std::collections::BTreeMap;

use crate::ranges::{Number, Ranges};

/// A set of addresses: the first and the last address of each range. Each operation takes time logarithmic in
/// the number of ranges.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FreeRanges {
    ranges: BTreeMap<Number, Number>,
    count: u128,
}

impl FreeRanges {
    pub(super) fn of(ranges: &Ranges) -> Self {
        let by_first = ranges.iter().map(|range| (*range.start(), *range.end())).collect();
        Self { ranges: by_first, count: ranges.count() }
    }

    pub(super) fn count(&self) -> u128 {
        self.count
    }

    /// Removes an address. Returns whether the set had the address.
    pub(super) fn take(&mut self, number: Number) -> bool {
        let Some((&first, &last)) = self.ranges.range(..=number).next_back() else { return false };
        if last < number {
            return false;
        }
        self.ranges.remove(&first);
        if first < number {
            self.ranges.insert(first, number - 1);
        }
        if number < last {
            self.ranges.insert(number + 1, last);
        }
        self.count -= 1;
        true
    }

    /// Adds an address that is not in the set.
    pub(super) fn put(&mut self, number: Number) {
        let before = self.ranges.range(..=number).next_back().map(|(&first, &last)| (first, last));
        if before.is_some_and(|(_, last)| last >= number) {
            return;
        }
        let first = match before {
            Some((first, last)) if last + 1 == number => first,
            _ => number,
        };
        let next = number.checked_add(1);
        let last = next.and_then(|next| self.ranges.remove(&next)).unwrap_or(number);
        self.ranges.insert(first, last);
        self.count += 1;
    }

    /// Returns all addresses, beginning with the first address that is not less than `start`, and wrapping
    /// around.
    pub(super) fn from(&self, start: Number) -> impl Iterator<Item = Number> {
        let before = self.ranges.range(..start).next_back().map(|(&first, &last)| (first, last));
        let split = before.filter(|(_, last)| *last >= start);
        let rest_of_split = split.map(|(_, last)| start..=last).into_iter().flatten();
        let after = self.ranges.range(start..).flat_map(|(&first, &last)| first..=last);
        let wrapped = self.ranges.range(..start).flat_map(move |(&first, &last)| first..=last.min(start - 1));
        rest_of_split.chain(after).chain(wrapped)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::IPPoolSpec;

    fn ranges(cidrs: &[&str]) -> Ranges {
        let cidrs = cidrs.iter().map(ToString::to_string).collect();
        Ranges::of(&IPPoolSpec { cidrs, exclusions: Vec::new() }).expect("valid")
    }

    /// Random operations on the ranges and on a plain set have the same results.
    #[test]
    fn it_is_a_set() {
        let mut random = fastrand::Rng::with_seed(7);
        let ranges = ranges(&["10.0.0.0/26", "10.0.1.0/27"]);
        let all: Vec<Number> = (0..ranges.count()).filter_map(|index| ranges.nth(index)).collect();
        let mut free = FreeRanges::of(&ranges);
        let mut set: BTreeSet<Number> = all.iter().copied().collect();
        for _ in 0..5000 {
            let number = all[random.usize(..all.len())];
            if random.bool() {
                assert_eq!(free.take(number), set.remove(&number));
            } else {
                free.put(number);
                set.insert(number);
            }
            assert_eq!(free.count(), set.len() as u128);
            let start = all[random.usize(..all.len())];
            let round: Vec<Number> = set.range(start..).chain(set.range(..start)).copied().collect();
            assert_eq!(free.from(start).collect::<Vec<_>>(), round);
        }
        set.iter().for_each(|number| assert!(free.take(*number)));
        assert_eq!(free, FreeRanges::default());
        all.iter().for_each(|number| free.put(*number));
        assert_eq!(free, FreeRanges::of(&ranges), "ranges grow together again");
    }

    #[test]
    fn the_ends_of_the_numbers_are_no_exception() {
        let mut free = FreeRanges::default();
        free.put(Number::MAX);
        free.put(0);
        assert_eq!(free.from(5).collect::<Vec<_>>(), [Number::MAX, 0]);
        assert_eq!(free.from(0).collect::<Vec<_>>(), [0, Number::MAX]);
        assert!(free.take(Number::MAX) && free.take(0) && !free.take(0));
        let whole = FreeRanges::of(&ranges(&["::/0"]));
        assert_eq!(whole.from(Number::MAX).take(2).collect::<Vec<_>>(), [Number::MAX, 0]);
    }
}
