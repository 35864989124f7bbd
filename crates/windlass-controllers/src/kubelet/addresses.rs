//! The IP addresses of the simulated pods: 10.244.0.0/16.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

const NETWORK: u32 = u32::from_be_bytes([10, 244, 0, 0]);
/// The host numbers for pods: without network, gateway and broadcast address.
const HOSTS: std::ops::RangeInclusive<u16> = 2..=u16::MAX - 1;

/// Assigns addresses to pods. Owners are uids.
#[derive(Debug)]
pub(super) struct AddressPool {
    by_owner: BTreeMap<String, u16>,
    taken: BTreeMap<u16, String>,
    next: u16,
}

impl Default for AddressPool {
    fn default() -> Self {
        Self { by_owner: BTreeMap::new(), taken: BTreeMap::new(), next: *HOSTS.start() }
    }
}

impl AddressPool {
    /// Returns the address of `owner`. An owner without an address gets the next free address. `None` if all addresses are in use.
    pub(super) fn assign(&mut self, owner: &str) -> Option<Ipv4Addr> {
        if let Some(host) = self.by_owner.get(owner) {
            return Some(address(*host));
        }
        // Continue after the last address, so that a released address is not reused at once.
        let host = (self.next..=*HOSTS.end())
            .chain(*HOSTS.start()..self.next)
            .find(|host| !self.taken.contains_key(host))?;
        self.next = if host == *HOSTS.end() { *HOSTS.start() } else { host + 1 };
        self.take(owner, host);
        Some(address(host))
    }

    /// Assigns the address in the pod's status to `owner`, if the address is in the network and free.
    pub(super) fn adopt(&mut self, owner: &str, shown: &str) {
        let Ok(shown) = shown.parse::<Ipv4Addr>() else { return };
        let offset = u32::from(shown).wrapping_sub(NETWORK);
        let Ok(host) = u16::try_from(offset) else { return };
        if HOSTS.contains(&host) && !self.taken.contains_key(&host) && !self.by_owner.contains_key(owner) {
            self.take(owner, host);
        }
    }

    /// Releases the address of `owner`.
    pub(super) fn release(&mut self, owner: &str) {
        if let Some(host) = self.by_owner.remove(owner) {
            self.taken.remove(&host);
        }
    }

    fn take(&mut self, owner: &str, host: u16) {
        self.by_owner.insert(owner.to_owned(), host);
        self.taken.insert(host, owner.to_owned());
    }
}

fn address(host: u16) -> Ipv4Addr {
    Ipv4Addr::from(NETWORK + u32::from(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pod_has_its_own_address_and_keeps_it() {
        let mut addresses = AddressPool::default();
        let first = addresses.assign("a").unwrap();
        assert_eq!(first, Ipv4Addr::new(10, 244, 0, 2));
        assert_ne!(addresses.assign("b"), Some(first));
        assert_eq!(addresses.assign("a"), Some(first));
    }

    #[test]
    fn an_address_given_back_rests_before_it_is_used_again() {
        let mut addresses = AddressPool::default();
        let first = addresses.assign("a").unwrap();
        addresses.release("a");
        assert_ne!(addresses.assign("b"), Some(first));
    }

    #[test]
    fn an_address_that_a_pod_shows_already_is_kept_for_it() {
        let mut addresses = AddressPool::default();
        addresses.adopt("old", "10.244.0.2");
        addresses.adopt("thief", "10.244.0.2");
        addresses.adopt("stranger", "192.168.0.1");
        assert_eq!(addresses.assign("old"), Some(Ipv4Addr::new(10, 244, 0, 2)));
        assert_eq!(addresses.assign("thief"), Some(Ipv4Addr::new(10, 244, 0, 3)));
    }

    #[test]
    fn when_all_are_taken_there_is_none_until_one_is_given_back() {
        let mut addresses = AddressPool::default();
        let count = HOSTS.count();
        for n in 0..count {
            assert!(addresses.assign(&n.to_string()).is_some());
        }
        assert_eq!(addresses.assign("late"), None);
        addresses.release("7");
        assert!(addresses.assign("late").is_some());
    }
}
