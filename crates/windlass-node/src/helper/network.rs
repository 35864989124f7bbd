//! The network of a sandbox: the loopback device alone, configured by netlink.

use std::io;
use std::net::IpAddr;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with};

use super::protocol::{Doing, Refusal};

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const NEW_ROUTE: u16 = 24;
/// The type of the kernel's answer: an error number, 0 for success.
const ERROR: u16 = 2;
/// Request and acknowledge.
const REQUEST: u16 = 1 | 4;
/// Create.
const CREATE: u16 = 0x400;
const FAMILY_4: u8 = 2;
const FAMILY_6: u8 = 10;
const LOOPBACK: u32 = 1;
const UP: u32 = 1;
const ATTRIBUTE_DESTINATION: u16 = 1;
const ATTRIBUTE_ADDRESS: u16 = 1;
const ATTRIBUTE_LOCAL: u16 = 2;
const ATTRIBUTE_OUTPUT: u16 = 4;
const ATTRIBUTE_SOURCE: u16 = 7;
const TABLE_LOCAL: u8 = 255;
const PROTOCOL_BOOT: u8 = 3;
const SCOPE_HOST: u8 = 254;
const TYPE_LOCAL: u8 = 2;

/// Brings the loopback device up, adds `address`, and makes all addresses of `ranges` local.
pub(super) fn configure(address: IpAddr, ranges: &[(IpAddr, u8)]) -> Result<(), Refusal> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
        .doing("open a netlink socket")?;
    let ask = |kind, flags, body: &[u8]| exchange(&socket, kind, flags, body);
    ask(NEW_LINK, 0, &link_up()).doing("bring the loopback device up")?;
    if !address.is_loopback() {
        ask(NEW_ADDRESS, CREATE, &add_address(address)).doing("add the address of the pod")?;
    }
    for (range, prefix) in ranges {
        let source = (address.is_ipv4() == range.is_ipv4() && !address.is_loopback()).then_some(address);
        ask(NEW_ROUTE, CREATE, &local_route(*range, *prefix, source))
            .doing("add the route of a service range")?;
    }
    Ok(())
}

fn exchange(socket: &std::os::fd::OwnedFd, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
    let mut message = Vec::with_capacity(16 + body.len());
    message.extend_from_slice(&((16 + body.len()) as u32).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&(REQUEST | flags).to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(body);
    send(socket, &message, SendFlags::empty())?;
    let mut answer = [0_u8; 4096];
    let (length, _) = recv(socket, &mut answer[..], RecvFlags::empty())?;
    acknowledged(&answer[..length])
}

/// Reads the acknowledgement of the kernel.
fn acknowledged(answer: &[u8]) -> io::Result<()> {
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let number = answer.get(16..20).and_then(|bytes| bytes.try_into().ok()).map(i32::from_ne_bytes);
    match (kind, number) {
        (Some(ERROR), Some(0)) => Ok(()),
        (Some(ERROR), Some(number)) => Err(io::Error::from_raw_os_error(-number)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "an unexpected netlink message")),
    }
}

fn link_up() -> Vec<u8> {
    let mut body = vec![0; 4];
    body.extend_from_slice(&LOOPBACK.to_ne_bytes());
    body.extend_from_slice(&UP.to_ne_bytes());
    body.extend_from_slice(&UP.to_ne_bytes());
    body
}

fn add_address(address: IpAddr) -> Vec<u8> {
    let (family, bytes) = parts(address);
    let mut body = vec![family, bytes.len() as u8 * 8, 0, SCOPE_HOST];
    body.extend_from_slice(&LOOPBACK.to_ne_bytes());
    attribute(&mut body, ATTRIBUTE_LOCAL, &bytes);
    attribute(&mut body, ATTRIBUTE_ADDRESS, &bytes);
    body
}

fn local_route(range: IpAddr, prefix: u8, source: Option<IpAddr>) -> Vec<u8> {
    let (family, bytes) = parts(range);
    let mut body = vec![family, prefix, 0, 0, TABLE_LOCAL, PROTOCOL_BOOT, SCOPE_HOST, TYPE_LOCAL, 0, 0, 0, 0];
    attribute(&mut body, ATTRIBUTE_DESTINATION, &bytes);
    attribute(&mut body, ATTRIBUTE_OUTPUT, &LOOPBACK.to_ne_bytes());
    if let Some(source) = source {
        attribute(&mut body, ATTRIBUTE_SOURCE, &parts(source).1);
    }
    body
}

fn parts(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (FAMILY_4, address.octets().to_vec()),
        IpAddr::V6(address) => (FAMILY_6, address.octets().to_vec()),
    }
}

/// Appends an attribute. All values have a length that is a multiple of 4.
fn attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend_from_slice(&((4 + value.len()) as u16).to_ne_bytes());
    body.extend_from_slice(&kind.to_ne_bytes());
    body.extend_from_slice(value);
}
