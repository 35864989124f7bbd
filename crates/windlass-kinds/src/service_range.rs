//! The range that the cluster addresses of services are allocated from.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

/// The smallest number of bits that addresses of a range share: larger ranges are refused, as kube-apiserver does.
const FEWEST_BITS: u32 = 12;
/// The largest number of bits: eight addresses are the least that is of use.
const MOST_BITS: u32 = 29;

/// The range that the cluster addresses of services are allocated from: IPv4 in CIDR notation. Default: `10.0.0.0/24`, as
/// in kube-apiserver.
///
/// The first address is that of the Service `kubernetes`.
///
/// ```
/// use windlass_kinds::ServiceClusterIpRange;
///
/// let range: ServiceClusterIpRange = "10.96.0.0/16".parse()?;
/// assert_eq!(range.first().to_string(), "10.96.0.1");
/// assert!("10.96.0.0/8".parse::<ServiceClusterIpRange>().is_err());
/// # Ok::<(), windlass_kinds::ServiceRangeError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceClusterIpRange {
    network: u32,
    bits: u32,
}

/// The error of a text that is not a range of addresses for services.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ServiceRangeError(String);

impl Default for ServiceClusterIpRange {
    fn default() -> Self {
        Self { network: u32::from(Ipv4Addr::new(10, 0, 0, 0)), bits: 24 }
    }
}

impl FromStr for ServiceClusterIpRange {
    type Err = ServiceRangeError;

    fn from_str(text: &str) -> Result<Self, ServiceRangeError> {
        let wrong = || {
            let why = format!("{text:?} is not a range of IPv4 addresses like 10.0.0.0/24");
            ServiceRangeError(why)
        };
        let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
        let address: Ipv4Addr = address.parse().map_err(|_| wrong())?;
        let bits: u32 = bits.parse().ok().filter(|bits| *bits <= 32).ok_or_else(wrong)?;
        if bits < FEWEST_BITS {
            let why = format!("{text} is too large; for 32-bit addresses, the mask must be >= {FEWEST_BITS}");
            return Err(ServiceRangeError(why));
        }
        if bits > MOST_BITS {
            let why =
                format!("{text} is too small; the service cluster IP range must be at least 8 IP addresses");
            return Err(ServiceRangeError(why));
        }
        Ok(Self { network: u32::from(address) & (u32::MAX << (32 - bits)), bits })
    }
}

impl fmt::Display for ServiceClusterIpRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", Ipv4Addr::from(self.network), self.bits)
    }
}

impl ServiceClusterIpRange {
    /// Returns the first address, which is that of the API server.
    pub fn first(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.network + 1)
    }

    /// Returns the number of addresses, without those of the network and for broadcasts.
    pub(super) fn len(self) -> u32 {
        (1 << (32 - self.bits)) - 2
    }

    /// Returns an address of the range; 0 is the first.
    pub(super) fn address(self, offset: u32) -> Ipv4Addr {
        Ipv4Addr::from(self.network + 1 + offset)
    }

    pub(super) fn contains(self, address: Ipv4Addr) -> bool {
        let offset = u32::from(address).wrapping_sub(self.network + 1);
        offset < self.len()
    }

    /// Returns the number of addresses at the start that are allocated last, for clients that choose an
    /// address.
    pub(super) fn reserved(self) -> u32 {
        let size = self.len() + 2;
        if size <= 16 { 0 } else { (size / 16).clamp(16, 256) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_all_addresses_but_two() {
        let range: ServiceClusterIpRange = "10.1.2.3/28".parse().unwrap();
        assert_eq!(range.to_string(), "10.1.2.0/28");
        assert_eq!((range.len(), range.reserved()), (14, 0));
        let contains = |last: u8| range.contains(Ipv4Addr::new(10, 1, 2, last));
        assert_eq!([0, 1, 14, 15].map(contains), [false, true, true, false]);
        let default = ServiceClusterIpRange::default();
        assert_eq!((default.to_string(), default.reserved()), ("10.0.0.0/24".to_owned(), 16));
        assert_eq!("10.0.0.0/16".parse::<ServiceClusterIpRange>().unwrap().reserved(), 256);
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "10.0.0.0", "10.0.0/24", "10.0.0.0/33", "10.0.0.0/11", "10.0.0.0/30", "fd00::/108"] {
            assert!(text.parse::<ServiceClusterIpRange>().is_err(), "{text}");
        }
    }
}
