//! The name server of the cluster, for the programs of pods.

mod message;
mod records;
mod resolver;
mod server;
mod service;
mod upstream;
mod zone;

pub(super) use self::records::records_of;
pub(super) use self::resolver::resolver;
pub(super) use self::server::NameServer;
pub(crate) use self::service::create as create_service;

use std::net::Ipv4Addr;

/// The address of the name server, and of the Service `kube-dns`.
pub(super) const DNS_SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 10);
/// The domain of the cluster.
const DOMAIN: &str = "cluster.local";
