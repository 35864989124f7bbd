//! The checked content of a spec.

use std::net::IpAddr;

use crate::{Cidr, InvalidSpec, apis::samplecrd::v1::NetworkSpec, neutron::AllocationPool};

/// The subnet that a spec asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Desired {
    /// The addresses of the subnet.
    pub cidr: Cidr,
    /// The gateway.
    pub gateway: IpAddr,
}

impl Desired {
    /// Checks a spec.
    ///
    /// # Errors
    /// The CIDR does not parse, or no subnet can have the CIDR; or the gateway is not an address of the CIDR,
    /// or no gateway can have the address.
    pub fn of(spec: &NetworkSpec) -> Result<Self, InvalidSpec> {
        let cidr: Cidr = spec.cidr.parse()?;
        if let Some(flaw) = cidr.flaw() {
            let message = format!("spec.cidr: Neutron has no subnet {cidr}, {flaw}");
            return Err(InvalidSpec { reason: "InvalidCIDR", message });
        }
        let invalid = |message: String| InvalidSpec { reason: "InvalidGateway", message };
        let gateway: IpAddr = spec
            .gateway
            .parse()
            .map_err(|_| invalid(format!("spec.gateway: {:?} is not an IP address", spec.gateway)))?;
        if !cidr.contains(gateway) {
            return Err(invalid(format!("spec.gateway: {gateway} is not in {cidr}")));
        }
        if !cidr.can_have_gateway(gateway) {
            return Err(invalid(format!(
                "spec.gateway: {gateway} is the network or the broadcast address of {cidr}"
            )));
        }
        Ok(Self { cidr, gateway })
    }

    /// Returns the addresses of hosts: the whole block except the gateway. Neutron does not compute the pools
    /// again when the gateway changes, and refuses a gateway inside of the pools.
    pub fn allocation_pools(&self) -> Vec<AllocationPool> {
        AllocationPool::without_gateway(self.cidr, self.gateway)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desired(cidr: &str, gateway: &str) -> Result<Desired, InvalidSpec> {
        Desired::of(&NetworkSpec { cidr: cidr.to_owned(), gateway: gateway.to_owned() })
    }

    fn pools(cidr: &str, gateway: &str) -> Vec<String> {
        let pools = desired(cidr, gateway).expect("valid").allocation_pools();
        pools.iter().map(|pool| format!("{}-{}", pool.start, pool.end)).collect()
    }

    #[test]
    fn the_gateway_is_a_host_of_the_block() {
        assert!(desired("192.168.0.0/16", "192.168.0.1").is_ok());
        assert!(desired("fd00::/64", "fd00::1").is_ok());
        assert!(desired("fd00::/64", "fd00::").is_ok(), "the address of the routers of a subnet");
        assert!(desired("10.0.0.0/30", "10.0.0.1").is_ok() && desired("fd00::/126", "fd00::1").is_ok());
        let cases = [
            ("192.168.0.0", "192.168.0.1", "InvalidCIDR"),
            ("192.168.0.0/33", "192.168.0.1", "InvalidCIDR"),
            ("192.168.0.1/16", "192.168.0.1", "InvalidCIDR"),
            ("192.168.0.0/31", "192.168.0.1", "InvalidCIDR"),
            ("0.0.0.0/0", "192.168.0.1", "InvalidCIDR"),
            ("224.0.0.0/8", "224.0.0.1", "InvalidCIDR"),
            ("127.1.0.0/16", "127.1.0.1", "InvalidCIDR"),
            ("::/64", "::1", "InvalidCIDR"),
            ("fd00::/127", "fd00::1", "InvalidCIDR"),
            ("ff02::/64", "ff02::1", "InvalidCIDR"),
            ("192.168.0.0/16", "10.0.0.1", "InvalidGateway"),
            ("192.168.0.0/16", "fd00::1", "InvalidGateway"),
            ("192.168.0.0/16", "192.168.0.0", "InvalidGateway"),
            ("192.168.0.0/16", "192.168.255.255", "InvalidGateway"),
            ("192.168.0.0/16", "gateway", "InvalidGateway"),
        ];
        for (cidr, gateway, reason) in cases {
            assert_eq!(desired(cidr, gateway).expect_err(gateway).reason, reason);
        }
    }

    #[test]
    fn pools_leave_the_gateway_out() {
        assert_eq!(pools("10.0.0.0/24", "10.0.0.1"), ["10.0.0.2-10.0.0.254"]);
        assert_eq!(pools("10.0.0.0/24", "10.0.0.254"), ["10.0.0.1-10.0.0.253"]);
        assert_eq!(pools("10.0.0.0/24", "10.0.0.9"), ["10.0.0.1-10.0.0.8", "10.0.0.10-10.0.0.254"]);
        assert_eq!(pools("fd00::/64", "fd00::1"), ["fd00::2-fd00::ffff:ffff:ffff:ffff"]);
        assert_eq!(pools("fd00::/64", "fd00::"), ["fd00::1-fd00::ffff:ffff:ffff:ffff"]);
        assert_eq!(pools("10.0.0.0/30", "10.0.0.1"), ["10.0.0.2-10.0.0.2"]);
        assert_eq!(pools("128.0.0.0/1", "128.0.0.9").len(), 2);
    }
}
