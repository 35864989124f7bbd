//! The network of the pods: one network for the node, and a network for each pod with a pair of devices between the pod and the node.
//!
//! The node's network has no device of the machine. The addresses of services are addresses of the node's network, so that the runtime
//! can listen on these addresses for all pods. An address of a range that belongs to no pod is an address of the node's network too:
//! connections are refused at once.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;

use super::netlink::{Device, LOOPBACK, Netlink, Via};
use super::protocol::{Doing, Refusal};

/// The only device of a pod. A high index is free in a new network, where some kernels create devices for tunnels.
pub(crate) const ONLY_DEVICE: Device<'static> = Device { index: 1000, name: "eth0" };
/// The index of the node's first device.
const FIRST_DEVICE: u32 = 1000;
/// The next hop of all routes of pods. No device has the address: frames to the node need no hardware address.
const GATEWAY_4: Ipv4Addr = Ipv4Addr::new(169, 254, 1, 1);
const GATEWAY_6: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
/// The switches that let the node pass packets from pod to pod.
const FORWARDING: [&str; 2] = ["/proc/sys/net/ipv4/ip_forward", "/proc/sys/net/ipv6/conf/all/forwarding"];

/// The network of the node.
#[derive(Debug)]
pub(crate) struct NodeNetwork {
    netlink: Netlink,
    next_device: u32,
    ranges: BTreeSet<(IpAddr, u8)>,
}

/// The node's side of a pod.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attachment {
    address: IpAddr,
    device: u32,
}

impl NodeNetwork {
    /// Configures the network of this thread.
    pub(crate) fn new() -> Result<Self, Refusal> {
        let netlink = Netlink::open().doing("open a netlink socket")?;
        netlink
            .check_pairs()
            .doing("create network devices of the kind veth; try `modprobe veth` as root")?;
        netlink.bring_up(LOOPBACK).doing("bring the loopback device up")?;
        for file in FORWARDING {
            // Not all kernels have IPv6.
            let _ = std::fs::write(file, "1");
        }
        Ok(Self { netlink, next_device: FIRST_DEVICE, ranges: BTreeSet::new() })
    }

    /// Connects the network of this thread, the network of a pod, to the node's network `node`. The pod gets the new device `near`.
    pub(crate) fn attach(
        &mut self,
        node: impl AsFd,
        near: Device<'_>,
        address: IpAddr,
        ranges: &[(IpAddr, u8)],
    ) -> Result<Attachment, Refusal> {
        let pod = Netlink::open().doing("open a netlink socket")?;
        pod.bring_up(LOOPBACK).doing("bring the loopback device up")?;
        let device = self.next_device;
        self.next_device = device.checked_add(1).filter(|next| *next < 1 << 31).unwrap_or(FIRST_DEVICE);
        let far = Device { index: device, name: &format!("pod{device}") };
        pod.create_pair(near, far, node.as_fd()).doing("create the network devices of the pod")?;
        pod.add_address(near.index, address).doing("add the address of the pod")?;
        for range in ranges.iter().filter(|(range, _)| range.is_ipv4() == address.is_ipv4()) {
            let gateway = if address.is_ipv4() { GATEWAY_4.into() } else { GATEWAY_6.into() };
            let via = Via::Gateway { device: near.index, gateway, source: address };
            pod.add_route(*range, via).doing("add the route of a range of addresses")?;
        }
        self.accept(ranges)?;
        self.netlink.bring_up(device).doing("bring the node's side of the pod up")?;
        self.netlink
            .add_route(host(address), Via::Device(device))
            .doing("add the route to the address of the pod")?;
        Ok(Attachment { address, device })
    }

    /// Forgets the address of a pod: connections to the address are refused from now on. The kernel removes the devices with the
    /// network of the pod.
    pub(crate) fn detach(&self, attachment: Attachment) {
        // A later pod may have the address already.
        let _ = self.netlink.delete_route(host(attachment.address), Via::Device(attachment.device));
    }

    /// Makes the addresses of `ranges` addresses of the node.
    fn accept(&mut self, ranges: &[(IpAddr, u8)]) -> Result<(), Refusal> {
        for range in ranges {
            if !self.ranges.contains(range) {
                self.netlink.add_route(*range, Via::Local).doing("accept a range of addresses")?;
                self.ranges.insert(*range);
            }
        }
        Ok(())
    }
}

/// Returns the range of one address.
fn host(address: IpAddr) -> (IpAddr, u8) {
    (address, if address.is_ipv4() { 32 } else { 128 })
}
