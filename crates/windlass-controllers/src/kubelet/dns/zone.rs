//! The names of the cluster, and the answers to questions about the names.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use windlass_runtime::ObjectKey;

use super::DOMAIN;
use super::records::ServiceRecords;
use crate::kubelet::services::Protocol;

/// The most ExternalNames that lead from one to the next.
const MAX_ALIASES: usize = 8;
/// The ranges of the cluster's addresses, whose names no other name server knows.
const OWN_RANGES: [[u8; 2]; 2] = [[10, 0], [10, 244]];

/// The type of the records that a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    A,
    Aaaa,
    Srv,
    Ptr,
    Cname,
    Any,
    Other,
}

/// A record of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub name: String,
    pub data: Data,
}

/// The data of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data {
    Address(IpAddr),
    Alias(String),
    Port { port: u16, target: String },
    Pointer(String),
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// The name exists. `follow` is a name outside of the cluster that an alias leads to.
    Found { records: Vec<Record>, follow: Option<String> },
    /// The name is in the cluster's domain and does not exist.
    NoSuchName,
    /// The name belongs to another domain.
    NotOurs,
}

impl Lookup {
    fn found(records: Vec<Record>) -> Self {
        Self::Found { records, follow: None }
    }
}

/// The names of all Services.
#[derive(Debug, Default)]
pub(super) struct Zone {
    services: BTreeMap<ObjectKey, ServiceRecords>,
}

impl Zone {
    /// Replaces the records of a Service. `None` removes the records.
    pub(super) fn replace(&mut self, service: &ObjectKey, records: Option<ServiceRecords>) {
        match records {
            Some(records) => self.services.insert(service.clone(), records),
            None => self.services.remove(service),
        };
    }

    /// Answers a question. `name` may end with a dot.
    pub(super) fn lookup(&self, name: &str, kind: Kind) -> Lookup {
        let name = normal(name);
        if let Some(address) = name.strip_suffix(".in-addr.arpa") {
            return self.reverse(&name, address, kind);
        }
        let Some(inner) = name.strip_suffix(DOMAIN) else { return Lookup::NotOurs };
        let labels: Vec<&str> = match inner.strip_suffix('.') {
            Some(inner) => inner.rsplit('.').collect(),
            None if inner.is_empty() => Vec::new(),
            None => return Lookup::NotOurs,
        };
        match labels.as_slice() {
            [] | ["svc" | "pod"] => Lookup::found(Vec::new()),
            ["pod", _, dashed] => pod(&name, dashed, kind),
            ["svc", namespace] => {
                let exists = self.services.keys().any(|key| key.namespace() == Some(namespace));
                if exists { Lookup::found(Vec::new()) } else { Lookup::NoSuchName }
            }
            ["svc", namespace, service, rest @ ..] => {
                let key = ObjectKey::namespaced(namespace, service);
                let found = self.services.get(&key);
                found.map_or(Lookup::NoSuchName, |records| self.of_service(&name, &key, records, rest, kind))
            }
            _ => Lookup::NoSuchName,
        }
    }

    fn of_service(
        &self,
        name: &str,
        key: &ObjectKey,
        records: &ServiceRecords,
        rest: &[&str],
        kind: Kind,
    ) -> Lookup {
        match (rest, &records.external) {
            ([], Some(target)) => self.alias(name, target, kind),
            (_, Some(_)) => Lookup::NoSuchName,
            ([], None) if kind == Kind::Srv => Lookup::found(ports(name, key, records, |_| true)),
            ([], None) => Lookup::found(addresses(name, &records.addresses, kind)),
            (["_tcp" | "_udp"], None) => Lookup::found(Vec::new()),
            ([protocol @ ("_tcp" | "_udp"), port], None) => {
                let protocol = if *protocol == "_tcp" { Protocol::Tcp } else { Protocol::Udp };
                let port = port.strip_prefix('_').unwrap_or_default();
                let has_name =
                    |known: &super::records::PortRecord| known.name == port && known.protocol == protocol;
                if !records.ports.iter().any(has_name) {
                    return Lookup::NoSuchName;
                }
                let is_asked = matches!(kind, Kind::Srv | Kind::Any);
                let found = ports(name, key, records, has_name);
                Lookup::found(if is_asked { found } else { Vec::new() })
            }
            ([host], None) => match records.hosts.get(*host) {
                Some(of_host) => Lookup::found(addresses(name, of_host, kind)),
                None => Lookup::NoSuchName,
            },
            _ => Lookup::NoSuchName,
        }
    }

    /// Follows an alias, also to further aliases of the cluster.
    fn alias(&self, name: &str, target: &str, kind: Kind) -> Lookup {
        let mut records = Vec::new();
        let (mut name, mut target) = (name.to_owned(), target.to_owned());
        for _ in 0..MAX_ALIASES {
            records.push(Record { name, data: Data::Alias(target.clone()) });
            if kind == Kind::Cname {
                return Lookup::found(records);
            }
            if let Some(next) = self.external(&target) {
                (name, target) = (target, next.to_owned());
                continue;
            }
            return match self.lookup(&target, kind) {
                Lookup::Found { records: further, follow } => {
                    records.extend(further);
                    Lookup::Found { records, follow }
                }
                Lookup::NoSuchName => Lookup::found(records),
                Lookup::NotOurs => Lookup::Found { records, follow: Some(target) },
            };
        }
        Lookup::found(records)
    }

    /// Returns the external name of the Service with this domain name.
    fn external(&self, name: &str) -> Option<&str> {
        let labels: Vec<&str> = name.strip_suffix(DOMAIN)?.strip_suffix('.')?.split('.').collect();
        let [service, namespace, "svc"] = labels.as_slice() else { return None };
        self.services.get(&ObjectKey::namespaced(namespace, service))?.external.as_deref()
    }

    /// Returns the name of an address of the cluster.
    fn reverse(&self, name: &str, address: &str, kind: Kind) -> Lookup {
        let octets: Vec<u8> = address.rsplit('.').filter_map(|octet| octet.parse().ok()).collect();
        let Ok(octets) = <[u8; 4]>::try_from(octets) else { return Lookup::NotOurs };
        if !OWN_RANGES.contains(&[octets[0], octets[1]]) {
            return Lookup::NotOurs;
        }
        let address = IpAddr::V4(Ipv4Addr::from(octets));
        let names = self.services.iter().filter_map(|(key, records)| records.name_of(key, address));
        let found: Vec<_> =
            names.map(|target| Record { name: name.to_owned(), data: Data::Pointer(target) }).collect();
        if found.is_empty() {
            return Lookup::NoSuchName;
        }
        Lookup::found(if matches!(kind, Kind::Ptr | Kind::Any) { found } else { Vec::new() })
    }
}

/// Returns a name in lower case, without the dot at the end.
pub(super) fn normal(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Returns the address in the name of a pod: `10-244-0-7`.
fn pod(name: &str, dashed: &str, kind: Kind) -> Lookup {
    let address: Option<IpAddr> = match dashed.replace('-', ".").parse::<Ipv4Addr>() {
        Ok(address) => Some(address.into()),
        Err(_) => dashed.replace('-', ":").parse::<Ipv6Addr>().ok().map(Into::into),
    };
    address.map_or(Lookup::NoSuchName, |address| Lookup::found(addresses(name, &[address], kind)))
}

fn addresses(name: &str, all: &[IpAddr], kind: Kind) -> Vec<Record> {
    let is_asked = |address: &&IpAddr| match kind {
        Kind::A => address.is_ipv4(),
        Kind::Aaaa => address.is_ipv6(),
        Kind::Any => true,
        _ => false,
    };
    let record = |address: &IpAddr| Record { name: name.to_owned(), data: Data::Address(*address) };
    all.iter().filter(is_asked).map(record).collect()
}

/// Returns the ports of a Service that pass the filter.
fn ports(
    name: &str,
    key: &ObjectKey,
    records: &ServiceRecords,
    is_asked: impl Fn(&super::records::PortRecord) -> bool,
) -> Vec<Record> {
    let service = ServiceRecords::full_name(key);
    let record = |known: &super::records::PortRecord| {
        let host = known.host.as_deref();
        let target = host.map_or_else(|| service.clone(), |host| format!("{host}.{service}"));
        Record { name: name.to_owned(), data: Data::Port { port: known.port, target } }
    };
    records.ports.iter().filter(|known| is_asked(known)).map(record).collect()
}

#[cfg(test)]
mod tests;
