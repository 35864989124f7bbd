//! The `/etc/resolv.conf` of a pod: `dnsPolicy` and `dnsConfig`.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::{PodDNSConfig, PodSpec};
use windlass_node::Resolver;

use super::{DNS_SERVER, DOMAIN};

/// The file of the machine.
pub(super) const MACHINE: &str = "/etc/resolv.conf";
/// The most name servers that the C library reads.
const MAX_SERVERS: usize = 3;
/// The most search domains that Kubernetes allows.
const MAX_SEARCHES: usize = 32;

/// Returns the name servers of a pod. `None` stands for the file of the machine.
///
/// The network of a pod does not reach the name servers of the machine: with the policy `Default`, the name server of the cluster passes
/// questions on. The network of the machine does not reach the name server of the cluster: a pod with `hostNetwork` has the name servers of the
/// machine.
pub(in crate::kubelet) fn resolver(spec: &PodSpec, namespace: &str) -> Result<Option<Resolver>, String> {
    let machine = || parse(&std::fs::read_to_string(MACHINE).unwrap_or_default());
    choose(spec, namespace, machine)
}

fn choose(
    spec: &PodSpec,
    namespace: &str,
    machine: impl FnOnce() -> Resolver,
) -> Result<Option<Resolver>, String> {
    let policy = spec.dns_policy.as_deref().unwrap_or("ClusterFirst");
    let mut resolver = match (policy, spec.host_network == Some(true)) {
        ("None", _) => Resolver::default(),
        (_, true) if spec.dns_config.is_none() => return Ok(None),
        (_, true) => machine(),
        ("Default", false) => Resolver { servers: vec![DNS_SERVER.into()], ..machine() },
        _ => cluster_first(namespace, machine()),
    };
    if let Some(config) = &spec.dns_config {
        add(&mut resolver, config)?;
    }
    resolver.servers.truncate(MAX_SERVERS);
    resolver.searches.truncate(MAX_SEARCHES);
    Ok(Some(resolver))
}

fn cluster_first(namespace: &str, machine: Resolver) -> Resolver {
    let mut searches = vec![format!("{namespace}.svc.{DOMAIN}"), format!("svc.{DOMAIN}"), DOMAIN.to_owned()];
    add_new(&mut searches, machine.searches);
    Resolver { servers: vec![DNS_SERVER.into()], searches, options: vec!["ndots:5".to_owned()] }
}

/// Adds the `dnsConfig` of a pod. An option replaces the option with the same name.
fn add(resolver: &mut Resolver, config: &PodDNSConfig) -> Result<(), String> {
    let servers = config.nameservers.iter().flatten().map(|server| {
        server.parse::<IpAddr>().map_err(|_| format!("invalid name server {server:?} in dnsConfig"))
    });
    add_new(&mut resolver.servers, servers.collect::<Result<Vec<_>, _>>()?);
    add_new(&mut resolver.searches, config.searches.iter().flatten().cloned());
    for option in config.options.iter().flatten() {
        let Some(name) = option.name.as_deref().filter(|name| !name.is_empty()) else { continue };
        let text = match option.value.as_deref().filter(|value| !value.is_empty()) {
            Some(value) => format!("{name}:{value}"),
            None => name.to_owned(),
        };
        resolver.options.retain(|known| known.split(':').next() != Some(name));
        resolver.options.push(text);
    }
    Ok(())
}

fn add_new<T: PartialEq>(known: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for value in more {
        if !known.contains(&value) {
            known.push(value);
        }
    }
}

/// Reads the text of `/etc/resolv.conf`. Lines that cannot be read are left out.
pub(super) fn parse(text: &str) -> Resolver {
    let mut resolver = Resolver::default();
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let keyword = words.next().unwrap_or_default();
        let mut values = words.map(str::to_owned);
        match keyword {
            "nameserver" => {
                resolver.servers.extend(values.next().and_then(|server| server.parse::<IpAddr>().ok()));
            }
            "search" | "domain" => resolver.searches = values.filter(|domain| domain != ".").collect(),
            "options" => resolver.options.extend(values),
            _ => {}
        }
    }
    resolver
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const TEXT: &str = "# of the machine\nnameserver 192.0.2.1\nnameserver fe80::1%eth0\nsearch example.com\noptions edns0\n";

    fn of(spec: Value) -> Option<Resolver> {
        let mut spec = spec;
        spec["containers"] = json!([]);
        choose(&serde_json::from_value(spec).unwrap(), "web", || parse(TEXT)).unwrap()
    }

    fn strings(all: &[&str]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_pod_searches_in_its_namespace_first_and_then_as_the_machine() {
        let found = of(json!({})).unwrap();
        assert_eq!(found.servers, [IpAddr::from(DNS_SERVER)]);
        let searches = ["web.svc.cluster.local", "svc.cluster.local", "cluster.local", "example.com"];
        assert_eq!(found.searches, strings(&searches));
        assert_eq!(found.options, ["ndots:5"]);
        let found = of(json!({"dnsPolicy": "Default"})).unwrap();
        assert_eq!(found.servers, [IpAddr::from(DNS_SERVER)]);
        assert_eq!((found.searches, found.options), (strings(&["example.com"]), strings(&["edns0"])));
    }

    #[test]
    fn the_configuration_of_a_pod_is_added_or_stands_alone() {
        let config = json!({
            "nameservers": ["192.0.2.7"],
            "searches": ["svc.cluster.local", "own.example"],
            "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
        });
        let found = of(json!({"dnsConfig": config})).unwrap();
        assert_eq!(found.servers.len(), 2);
        assert_eq!(found.searches.last().unwrap(), "own.example");
        assert_eq!(found.searches.len(), 5);
        assert_eq!(found.options, ["ndots:2", "edns0"]);
        let found = of(json!({"dnsPolicy": "None", "dnsConfig": config})).unwrap();
        assert_eq!(found.servers, ["192.0.2.7".parse::<IpAddr>().unwrap()]);
        assert_eq!(found.searches, ["svc.cluster.local", "own.example"]);
    }

    #[test]
    fn a_pod_in_the_network_of_the_machine_asks_as_the_machine() {
        assert_eq!(of(json!({"hostNetwork": true})), None);
        let found = of(json!({"hostNetwork": true, "dnsConfig": {"searches": ["own.example"]}})).unwrap();
        assert_eq!(found.servers, ["192.0.2.1".parse::<IpAddr>().unwrap()]);
        assert_eq!(found.searches, ["example.com", "own.example"]);
    }
}
