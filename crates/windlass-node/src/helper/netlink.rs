//! Requests to the kernel about the devices, addresses and routes of a network.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
const DELETE_ROUTE: u16 = 25;
/// The type of the kernel's answer: an error number, 0 for success.
const ERROR: u16 = 2;
/// Request and acknowledge.
const REQUEST: u16 = 1 | 4;
const REPLACE: u16 = 0x100;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;
const FAMILY_4: u8 = 2;
const FAMILY_6: u8 = 10;
const UP: u32 = 1;
/// The device asks for no hardware addresses.
const NO_ARP: u32 = 0x80;

const LINK_ADDRESS: u16 = 1;
const LINK_NAME: u16 = 3;
const LINK_INFO: u16 = 18;
const LINK_INFO_KIND: u16 = 1;
const LINK_INFO_DATA: u16 = 2;
const LINK_NETWORK: u16 = 28;
const LINK_SEND_QUEUES: u16 = 31;
const LINK_RECEIVE_QUEUES: u16 = 32;
const VETH_PEER: u16 = 1;
const ADDRESS_ADDRESS: u16 = 1;
const ADDRESS_LOCAL: u16 = 2;
const ROUTE_DESTINATION: u16 = 1;
const ROUTE_DEVICE: u16 = 4;
const ROUTE_GATEWAY: u16 = 5;
const ROUTE_SOURCE: u16 = 7;

const TABLE_LOCAL: u8 = 255;
const PROTOCOL_BOOT: u8 = 3;
const SCOPE_UNIVERSE: u8 = 0;
const SCOPE_LINK: u8 = 253;
const SCOPE_HOST: u8 = 254;
const TYPE_UNICAST: u8 = 1;
const TYPE_LOCAL: u8 = 2;
/// The gateway is on the device, even if no address of the device says so.
const ON_LINK: u32 = 4;

/// The index of the loopback device in every network namespace.
pub(super) const LOOPBACK: u32 = 1;

/// The hardware address of both devices of every pair. Equal addresses let each side send frames without asking for the other address.
const HARDWARE: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];

/// Where a route leads.
#[derive(Clone, Copy, Debug)]
pub(super) enum Via {
    /// The addresses are those of this network.
    Local,
    /// The addresses are on a device.
    Device(u32),
    /// The addresses are behind a gateway, and are reached with a source address.
    Gateway { device: u32, gateway: IpAddr, source: IpAddr },
}

/// A device of a new pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Device<'a> {
    pub index: u32,
    pub name: &'a str,
}

/// A socket for requests about one network namespace.
#[derive(Debug)]
pub(super) struct Netlink(OwnedFd);

impl Netlink {
    /// Opens a socket for the network namespace of this process.
    pub(super) fn open() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        Ok(Self(socket))
    }

    /// Brings a device up.
    pub(super) fn bring_up(&self, device: u32) -> io::Result<()> {
        self.exchange(NEW_LINK, 0, &link(device, UP, UP))
    }

    /// Creates two connected devices: `near` in this network, up, and `far` in the network `other`, down.
    pub(super) fn create_pair(
        &self,
        near: Device<'_>,
        far: Device<'_>,
        other: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let mut peer = link(far.index, NO_ARP, NO_ARP);
        describe(&mut peer, far.name, HARDWARE);
        attribute(&mut peer, LINK_NETWORK, &other.as_raw_fd().to_ne_bytes());
        let mut body = link(near.index, UP | NO_ARP, UP | NO_ARP);
        describe(&mut body, near.name, HARDWARE);
        attribute(&mut body, LINK_INFO, &veth(&peer));
        self.exchange(NEW_LINK, CREATE | EXCLUSIVE, &body)
    }

    /// Returns an error if the kernel cannot create pairs of devices. Creates nothing.
    pub(super) fn check_pairs(&self) -> io::Result<()> {
        // The kernel looks for the kind of device before the kernel refuses the hardware address, which is a multicast address.
        let mut body = link(0, 0, 0);
        describe(&mut body, "check", [0xff; 6]);
        attribute(&mut body, LINK_INFO, &veth(&link(0, 0, 0)));
        match self.exchange(NEW_LINK, CREATE | EXCLUSIVE, &body) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::OPNOTSUPP.raw_os_error()) => {
                Err(error)
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
            _ => Ok(()),
        }
    }

    /// Adds an address to a device.
    pub(super) fn add_address(&self, device: u32, address: IpAddr) -> io::Result<()> {
        let (family, bytes) = parts(address);
        let mut body = vec![family, bytes.len() as u8 * 8, 0, SCOPE_UNIVERSE];
        body.extend_from_slice(&device.to_ne_bytes());
        attribute(&mut body, ADDRESS_LOCAL, &bytes);
        attribute(&mut body, ADDRESS_ADDRESS, &bytes);
        self.exchange(NEW_ADDRESS, CREATE, &body)
    }

    /// Adds a route, in place of an earlier route to the same addresses.
    pub(super) fn add_route(&self, range: (IpAddr, u8), via: Via) -> io::Result<()> {
        self.exchange(NEW_ROUTE, CREATE | REPLACE, &route(range, via))
    }

    /// Deletes a route.
    pub(super) fn delete_route(&self, range: (IpAddr, u8), via: Via) -> io::Result<()> {
        self.exchange(DELETE_ROUTE, 0, &route(range, via))
    }

    fn exchange(&self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        let mut message = Vec::with_capacity(16 + body.len());
        message.extend_from_slice(&((16 + body.len()) as u32).to_ne_bytes());
        message.extend_from_slice(&kind.to_ne_bytes());
        message.extend_from_slice(&(REQUEST | flags).to_ne_bytes());
        message.extend_from_slice(&[0; 8]);
        message.extend_from_slice(body);
        send(&self.0, &message, SendFlags::empty())?;
        let mut answer = [0_u8; 4096];
        let (length, _) = recv(&self.0, &mut answer[..], RecvFlags::empty())?;
        acknowledged(&answer[..length])
    }
}

/// Reads the acknowledgement of the kernel.
fn acknowledged(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let number = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, number) {
        (Some(ERROR), Some(0)) => Ok(()),
        (Some(ERROR), Some(number)) => Err(io::Error::from_raw_os_error(number.wrapping_neg())),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "an unexpected netlink message")),
    }
}

fn link(index: u32, flags: u32, change: u32) -> Vec<u8> {
    let mut body = vec![0; 4];
    for number in [index, flags, change] {
        body.extend_from_slice(&number.to_ne_bytes());
    }
    body
}

/// Adds the name and the hardware address of a device, and one queue for each direction.
fn describe(body: &mut Vec<u8>, name: &str, hardware: [u8; 6]) {
    attribute(body, LINK_NAME, &[name.as_bytes(), &[0]].concat());
    attribute(body, LINK_ADDRESS, &hardware);
    attribute(body, LINK_SEND_QUEUES, &1_u32.to_ne_bytes());
    attribute(body, LINK_RECEIVE_QUEUES, &1_u32.to_ne_bytes());
}

/// Returns the kind of a pair's device, with the other device.
fn veth(peer: &[u8]) -> Vec<u8> {
    let (mut info, mut data) = (Vec::new(), Vec::new());
    attribute(&mut data, VETH_PEER, peer);
    attribute(&mut info, LINK_INFO_KIND, b"veth");
    attribute(&mut info, LINK_INFO_DATA, &data);
    info
}

fn route((range, prefix): (IpAddr, u8), via: Via) -> Vec<u8> {
    let (family, bytes) = parts(range);
    let (scope, kind, flags) = match via {
        Via::Local => (SCOPE_HOST, TYPE_LOCAL, 0),
        Via::Device(_) => (SCOPE_LINK, TYPE_UNICAST, 0),
        Via::Gateway { .. } => (SCOPE_UNIVERSE, TYPE_UNICAST, ON_LINK),
    };
    let mut body = vec![family, prefix, 0, 0, TABLE_LOCAL, PROTOCOL_BOOT, scope, kind];
    body.extend_from_slice(&flags.to_ne_bytes());
    attribute(&mut body, ROUTE_DESTINATION, &bytes);
    let device = match via {
        Via::Local => LOOPBACK,
        Via::Device(device) | Via::Gateway { device, .. } => device,
    };
    attribute(&mut body, ROUTE_DEVICE, &device.to_ne_bytes());
    if let Via::Gateway { gateway, source, .. } = via {
        attribute(&mut body, ROUTE_GATEWAY, &parts(gateway).1);
        attribute(&mut body, ROUTE_SOURCE, &parts(source).1);
    }
    body
}

fn parts(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (FAMILY_4, address.octets().to_vec()),
        IpAddr::V6(address) => (FAMILY_6, address.octets().to_vec()),
    }
}

/// Appends an attribute, padded to a multiple of 4 bytes.
fn attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend_from_slice(&((4 + value.len()) as u16).to_ne_bytes());
    body.extend_from_slice(&kind.to_ne_bytes());
    body.extend_from_slice(value);
    body.resize(body.len().next_multiple_of(4), 0);
}
