//! Sets of addresses, as disjoint ranges in order.

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
    ops::RangeInclusive,
};

use crate::IPPoolSpec;

/// An address as a number: an IPv4 address is mapped into `::ffff:0:0/96`, so that both families have one
/// order.
pub(crate) type Number = u128;

pub(crate) fn number(address: IpAddr) -> Number {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

pub(crate) fn address(number: Number) -> IpAddr {
    IpAddr::V6(Ipv6Addr::from_bits(number)).to_canonical()
}

/// A pool that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidPool(String);

impl fmt::Display for InvalidPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The addresses of a pool: disjoint ranges in ascending order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<RangeInclusive<Number>>);

impl Ranges {
    /// Returns the addresses of the CIDRs without the exclusions.
    pub(crate) fn of(pool: &IPPoolSpec) -> Result<Self, InvalidPool> {
        let mut included = Vec::new();
        for text in &pool.cidrs {
            included.push(cidr(text)?);
        }
        let is_v4 = |range: &RangeInclusive<Number>| address(*range.start()).is_ipv4();
        if included.iter().any(|range| is_v4(range) != is_v4(&included[0])) {
            return Err(InvalidPool("the CIDRs are of both families; use one pool for each".to_owned()));
        }
        let mut excluded = Vec::new();
        for text in &pool.exclusions {
            excluded.push(exclusion(text)?);
        }
        Ok(Self::union(included).without(&Self::union(excluded)))
    }

    fn union(mut ranges: Vec<RangeInclusive<Number>>) -> Self {
        ranges.sort_by_key(|range| *range.start());
        let mut union: Vec<RangeInclusive<Number>> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match union.last_mut() {
                Some(last) if *range.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(range.end());
                }
                _ => union.push(range),
            }
        }
        Self(union)
    }

    fn without(self, excluded: &Self) -> Self {
        let mut left = Vec::new();
        for range in self.0 {
            let (mut first, last) = (*range.start(), *range.end());
            let mut is_empty = false;
            for gap in &excluded.0 {
                if *gap.end() < first || *gap.start() > last {
                    continue;
                }
                if *gap.start() > first {
                    left.push(first..=gap.start() - 1);
                }
                if *gap.end() >= last {
                    is_empty = true;
                    break;
                }
                first = gap.end() + 1;
            }
            if !is_empty {
                left.push(first..=last);
            }
        }
        Self(left)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RangeInclusive<Number>> {
        self.0.iter()
    }

    pub(crate) fn contains(&self, number: Number) -> bool {
        let after = self.0.partition_point(|range| *range.start() <= number);
        after > 0 && self.0[after - 1].contains(&number)
    }

    /// Returns the number of addresses, at most `u128::MAX`.
    pub(crate) fn count(&self) -> u128 {
        self.0
            .iter()
            .fold(0, |sum: u128, range| sum.saturating_add((range.end() - range.start()).saturating_add(1)))
    }

    /// Returns the address at an index below [`count`](Self::count).
    pub(crate) fn nth(&self, mut index: u128) -> Option<Number> {
        for range in &self.0 {
            let length = (range.end() - range.start()).saturating_add(1);
            if index < length {
                return Some(range.start() + index);
            }
            index -= length;
        }
        None
    }
}

/// Parses a CIDR. The address must be the first address of the network.
fn cidr(text: &str) -> Result<RangeInclusive<Number>, InvalidPool> {
    let invalid = || InvalidPool(format!("{text:?} is no CIDR, such as 10.0.0.0/24 or fd00::/64"));
    let (ip, prefix) = text.split_once('/').ok_or_else(invalid)?;
    let ip: IpAddr = ip.parse().map_err(|_| invalid())?;
    // Only digits, without leading zeros.
    let prefix: u32 =
        prefix.parse().ok().filter(|number: &u32| number.to_string() == prefix).ok_or_else(invalid)?;
    let bits: u32 = if ip.is_ipv4() { 32 } else { 128 };
    let host_bits = u32::checked_sub(bits, prefix).ok_or_else(invalid)?;
    let mask = if host_bits == 128 { u128::MAX } else { (1 << host_bits) - 1 };
    let first = number(ip);
    if first & mask != 0 {
        let network = address(first & !mask);
        return Err(InvalidPool(format!(
            "{text:?} is not the start of its network; write {network}/{prefix}"
        )));
    }
    Ok(first..=first | mask)
}

/// Reads an address, a CIDR, or a range of addresses.
fn exclusion(text: &str) -> Result<RangeInclusive<Number>, InvalidPool> {
    if text.contains('/') {
        return cidr(text);
    }
    let invalid = || InvalidPool(format!("{text:?} is no address, CIDR or range such as 10.0.0.1-10.0.0.9"));
    let parse = |text: &str| text.trim().parse().map(number).map_err(|_| invalid());
    let (first, last) = match text.split_once('-') {
        Some((first, last)) => (parse(first)?, parse(last)?),
        None => (parse(text)?, parse(text)?),
    };
    if first > last { Err(invalid()) } else { Ok(first..=last) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(cidrs: &[&str], exclusions: &[&str]) -> IPPoolSpec {
        let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        IPPoolSpec { cidrs: owned(cidrs), exclusions: owned(exclusions) }
    }

    fn shown(cidrs: &[&str], exclusions: &[&str]) -> Vec<String> {
        let ranges = Ranges::of(&pool(cidrs, exclusions)).expect("valid");
        ranges.iter().map(|range| format!("{}-{}", address(*range.start()), address(*range.end()))).collect()
    }

    #[test]
    fn cidrs_are_joined_and_exclusions_are_cut_out() {
        assert_eq!(shown(&["10.0.0.0/24", "10.0.1.0/24"], &[]), ["10.0.0.0-10.0.1.255"]);
        assert_eq!(shown(&["10.0.0.0/28"], &["10.0.0.0/30", "10.0.0.15"]), ["10.0.0.4-10.0.0.14"]);
        let both = shown(&["10.0.0.0/29", "10.0.0.32/31"], &["10.0.0.3-10.0.0.4"]);
        assert_eq!(both, ["10.0.0.0-10.0.0.2", "10.0.0.5-10.0.0.7", "10.0.0.32-10.0.0.33"]);
        assert_eq!(shown(&["fd00::/126"], &["fd00::", "fd00::2-fd00::3"]), ["fd00::1-fd00::1"]);
        assert!(shown(&["10.0.0.0/30"], &["10.0.0.0/24"]).is_empty());
    }

    #[test]
    fn counts_go_up_to_the_whole_of_ipv6() {
        let count = |cidr: &str| Ranges::of(&pool(&[cidr], &[])).expect("valid").count();
        assert_eq!(count("10.0.0.0/24"), 256);
        assert_eq!(count("10.0.0.1/32"), 1);
        assert_eq!(count("0.0.0.0/0"), 1 << 32);
        assert_eq!(count("fd00::/64"), 1 << 64);
        assert_eq!(count("::/0"), u128::MAX);
    }

    #[test]
    fn addresses_are_found_by_their_index() {
        let ranges = Ranges::of(&pool(&["10.0.0.0/30", "10.0.1.0/30"], &["10.0.0.1"])).expect("valid");
        let all: Vec<String> =
            (0..7).filter_map(|index| ranges.nth(index)).map(|number| address(number).to_string()).collect();
        assert_eq!(all, ["10.0.0.0", "10.0.0.2", "10.0.0.3", "10.0.1.0", "10.0.1.1", "10.0.1.2", "10.0.1.3"]);
        assert_eq!(ranges.nth(7), None);
        assert!(all.iter().all(|text| ranges.contains(number(text.parse().expect("an address")))));
        assert!(!ranges.contains(number("10.0.0.1".parse().expect("an address"))));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |cidrs: &[&str], exclusions: &[&str]| {
            Ranges::of(&pool(cidrs, exclusions)).expect_err("invalid").to_string()
        };
        assert_eq!(
            wrong(&["10.0.0.5/24"], &[]),
            "\"10.0.0.5/24\" is not the start of its network; write 10.0.0.0/24"
        );
        for cidr in
            ["10.0.0.0", "10.0.0.0/33", "fd00::/129", "x/8", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.0/08"]
        {
            assert!(wrong(&[cidr], &[]).contains("is no CIDR"), "{cidr}");
        }
        assert!(wrong(&["10.0.0.0/24"], &["10.0.0.9-10.0.0.1"]).contains("is no address"));
        assert!(wrong(&["10.0.0.0/24", "fd00::/64"], &[]).contains("both families"));
    }
}
