//! A set of completion indexes, in the form of an indexed Job's status: `0,2-5`.

use std::fmt;

/// Sorted intervals that do not touch each other. Both ends are included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<(i32, i32)>);

impl Indexes {
    /// Parses a set. Indexes from `completions` on, and malformed intervals, are left out.
    pub(super) fn parse(text: &str, completions: i32) -> Self {
        let interval = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            let last: i32 = i32::min(last, completions - 1);
            (first >= 0 && first <= last).then_some((first, last))
        };
        Self::of(text.split(',').filter_map(interval).collect())
    }

    /// Returns a set of single indexes.
    pub(super) fn of_each(indexes: impl IntoIterator<Item = i32>) -> Self {
        Self::of(indexes.into_iter().map(|index| (index, index)).collect())
    }

    fn of(mut intervals: Vec<(i32, i32)>) -> Self {
        intervals.sort_unstable();
        let mut merged: Vec<(i32, i32)> = Vec::with_capacity(intervals.len());
        for (first, last) in intervals {
            match merged.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => merged.push((first, last)),
            }
        }
        Self(merged)
    }

    /// Returns the indexes of both sets.
    pub(super) fn with(&self, other: &Self) -> Self {
        Self::of(self.0.iter().chain(&other.0).copied().collect())
    }

    pub(super) fn contains(&self, index: i32) -> bool {
        let after = self.0.partition_point(|(first, _)| *first <= index);
        after > 0 && self.0[after - 1].1 >= index
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of indexes.
    pub(super) fn count(&self) -> i32 {
        self.0.iter().fold(0, |sum, (first, last)| sum.saturating_add(last - first + 1))
    }

    /// Returns how many indexes both sets have.
    pub(super) fn overlap(&self, other: &Self) -> i32 {
        let common = |(a, b): &(i32, i32), (c, d): &(i32, i32)| (b.min(d) - a.max(c) + 1).max(0);
        let all = self.0.iter().flat_map(|mine| other.0.iter().map(move |theirs| common(mine, theirs)));
        all.fold(0, i32::saturating_add)
    }

    /// Returns the lowest indexes below `completions` that are not in the set, at most `count`.
    pub(super) fn missing(&self, count: usize, completions: i32) -> Vec<i32> {
        let mut found = Vec::new();
        let mut next = 0;
        for (first, last) in self.0.iter().copied().chain([(completions, completions)]) {
            found.extend((next..first.min(completions)).take(count - found.len()));
            next = next.max(last.saturating_add(1));
        }
        found
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (first, last)) in self.0.iter().enumerate() {
            f.write_str(if n > 0 { "," } else { "" })?;
            match last - first {
                0 => write!(f, "{first}")?,
                1 => write!(f, "{first},{last}")?,
                _ => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_and_written_as_the_status_has_them() {
        for (text, shown) in [
            ("", ""),
            ("0", "0"),
            ("0,1", "0,1"),
            ("0-2,5", "0-2,5"),
            ("1,0,2", "0-2"),
            ("7-12", "7-9"),
            ("12", ""),
            ("a,3,-1,2-1", "3"),
        ] {
            assert_eq!(Indexes::parse(text, 10).to_string(), shown, "{text}");
        }
    }

    #[test]
    fn the_lowest_missing_indexes_come_first() {
        let set = Indexes::parse("0,2,4-5", 8);
        assert_eq!(set.missing(2, 8), [1, 3]);
        assert_eq!(set.missing(9, 8), [1, 3, 6, 7]);
        assert_eq!(set.missing(0, 8), Vec::<i32>::new());
        assert_eq!(Indexes::default().missing(2, 1), [0]);
        assert_eq!((set.count(), set.contains(4), set.contains(3)), (4, true, false));
        assert_eq!(set.overlap(&Indexes::parse("1-4", 8)), 2);
        assert_eq!(set.with(&Indexes::of_each([1, 7])).to_string(), "0-2,4,5,7");
    }
}
