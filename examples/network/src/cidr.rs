//! Address blocks.

use std::{fmt, net::IpAddr, str::FromStr};

/// An address block. The bits after the prefix are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

/// The reason why Neutron refuses a block of addresses for a subnet with DHCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The block begins with `0.0.0.0` or `::`.
    Unspecified,
    /// The block has one or two addresses.
    TooSmall,
    Multicast,
    Loopback,
}

/// The reason why Neutron cannot have the network of a spec. Only a change of the spec helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSpec {
    /// The reason of the condition, such as `InvalidCIDR`.
    pub reason: &'static str,
    /// The message of the condition.
    pub message: String,
}

impl Cidr {
    /// Returns 4 or 6.
    pub fn ip_version(self) -> u8 {
        if self.address.is_ipv4() { 4 } else { 6 }
    }

    /// Returns whether an address is in the block.
    pub fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && number(address) & self.mask() == number(self.address)
    }

    /// Parses a block and drops the host bits, like Neutron.
    pub(crate) fn of_network(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/')?;
        let (address, prefix) = (address.parse::<IpAddr>().ok()?, prefix.parse::<u8>().ok()?);
        if prefix > if address.is_ipv4() { 32 } else { 128 } {
            return None;
        }
        let cidr = Self { address, prefix };
        Some(Self { address: cidr.address(number(address) & cidr.mask()), prefix })
    }

    /// Returns the first address of the block.
    pub(crate) fn network(self) -> IpAddr {
        self.address
    }

    /// Returns the first address that a host can have.
    pub(crate) fn first_host(self) -> IpAddr {
        self.address(self.hosts().0)
    }

    /// Returns whether a gateway can have an address of the block. The first address of an IPv6 block belongs
    /// to routers.
    pub(crate) fn can_have_gateway(self, address: IpAddr) -> bool {
        let (first, last) = (number(self.address), number(self.address) + self.last_offset());
        self.ip_version() == 6 || ![first, last].contains(&number(address))
    }

    /// Returns whether the block has all addresses.
    pub(crate) fn is_everything(self) -> bool {
        self.prefix == 0
    }

    /// Returns the reason why Neutron refuses the block. The first check that fails counts.
    pub(crate) fn flaw(self) -> Option<Flaw> {
        let begins_at_zero = number(self.address) == 0;
        let is_small = self.bits() - u32::from(self.prefix) < 2;
        // A block is loopback if all addresses are loopback.
        let is_loopback = self.address.is_loopback() && (self.ip_version() == 6 || self.prefix >= 8);
        let is_multicast =
            self.address.is_multicast() && self.prefix >= if self.ip_version() == 4 { 4 } else { 8 };
        let flaws = [
            (Flaw::Unspecified, begins_at_zero && self.ip_version() == 6),
            (Flaw::TooSmall, is_small),
            (Flaw::Multicast, is_multicast),
            (Flaw::Loopback, is_loopback),
            (Flaw::Unspecified, begins_at_zero),
        ];
        flaws.into_iter().find(|(_, has)| *has).map(|(flaw, _)| flaw)
    }

    fn bits(self) -> u32 {
        if self.address.is_ipv4() { 32 } else { 128 }
    }

    /// Returns a mask of the prefix, in the low bits of the number.
    fn mask(self) -> u128 {
        let all = if self.bits() == 128 { u128::MAX } else { u128::from(u32::MAX) };
        all & !self.last_offset()
    }

    /// Returns the number of addresses minus 1.
    fn last_offset(self) -> u128 {
        match self.bits() - u32::from(self.prefix) {
            128 => u128::MAX,
            bits => (1 << bits) - 1,
        }
    }

    /// Returns the first and the last address of hosts. Blocks of one or two addresses have no network or
    /// broadcast address.
    fn hosts(self) -> (u128, u128) {
        let (first, last) = (number(self.address), number(self.address) + self.last_offset());
        match (self.bits() - u32::from(self.prefix), self.ip_version()) {
            (0 | 1, _) => (first, last),
            (_, 4) => (first + 1, last - 1),
            _ => (first + 1, last),
        }
    }

    /// Returns whether a host can have an address, that is, any address except the network and broadcast
    /// addresses.
    pub(crate) fn has_host(self, address: IpAddr) -> bool {
        let (first, last) = self.hosts();
        (first..=last).contains(&number(address))
    }

    /// Returns the ranges of hosts below and above an address.
    pub(crate) fn hosts_without(self, address: IpAddr) -> impl Iterator<Item = (IpAddr, IpAddr)> {
        let ((first, last), address) = (self.hosts(), number(address));
        let below = (first < address).then(|| (first, last.min(address - 1)));
        let above = (address < last).then(|| (first.max(address + 1), last));
        let ranges = below.into_iter().chain(above).filter(|(start, end)| start <= end);
        ranges.map(move |(start, end)| (self.address(start), self.address(end)))
    }

    fn address(self, number: u128) -> IpAddr {
        if self.address.is_ipv4() { IpAddr::V4((number as u32).into()) } else { IpAddr::V6(number.into()) }
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "which begins with the unspecified address",
            Self::TooSmall => "which is too small",
            Self::Multicast => "which is for multicast",
            Self::Loopback => "which is for loopback",
        })
    }
}

impl FromStr for Cidr {
    type Err = InvalidSpec;

    fn from_str(text: &str) -> Result<Self, InvalidSpec> {
        let invalid = |message: String| InvalidSpec { reason: "InvalidCIDR", message };
        let Some(cidr) = Self::of_network(text) else {
            return Err(invalid(format!(
                "spec.cidr: {text:?} is not an address block such as 192.168.0.0/16"
            )));
        };
        if text.split_once('/').and_then(|(address, _)| address.parse().ok()) != Some(cidr.address) {
            return Err(invalid(format!("spec.cidr: {text} has host bits; write {cidr}")));
        }
        Ok(cidr)
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}
