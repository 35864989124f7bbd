//! Allocation of cluster addresses and node ports: the next free one after a random start.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;
use windlass_store::{ResourceId, object_meta as meta};
use windlass_wire::{ApiError, names};

use super::claims::{address_claim, port_claim};
use super::{has_cluster_address, has_node_ports, kind, needs_health_check};
use crate::json::{int_at, items_mut, spec_mut};
use crate::kind::WriteContext;

const FIRST_PORT: i64 = 30_000;
const PORTS: i64 = 2768;

/// Allocates the addresses and ports that a service needs and does not have.
pub(super) fn allocate<'a>(
    cx: &'a WriteContext<'a>,
    object: &mut Value,
    old: Option<&'a Value>,
) -> Result<(), ApiError> {
    let mut allocation = Allocation {
        cx,
        services: ResourceId::new("", "services"),
        // Addresses and ports of a service of the same name count as taken: a later step reports the taken
        // name.
        key: old.map(|old| format!("{}/{}", meta::namespace(old), meta::name(old))).unwrap_or_default(),
        name: meta::name(object).to_owned(),
        requested: BTreeSet::new(),
        held: old.and_then(|old| old.get("spec")?.as_object()).map(held_ports).unwrap_or_default(),
        allocated: BTreeSet::new(),
        old_address: old.and_then(|old| old.pointer("/spec/clusterIP")?.as_str()).unwrap_or_default(),
    };
    let spec = spec_mut(object);
    allocation.allocate_address(spec)?;
    allocation.requested = node_ports(spec).chain(health_port(spec)).collect();
    let before = old.and_then(|old| old.get("spec")?.as_object());
    if has_node_ports(kind(spec)) {
        match before {
            None => allocation.allocate_node_ports(spec)?,
            Some(before) => allocation.update_node_ports(spec, before)?,
        }
    }
    if needs_health_check(spec) && !before.is_some_and(needs_health_check) {
        allocation.allocate_health_port(spec)?;
    }
    Ok(())
}

/// Returns the node ports that a service has.
fn node_ports(spec: &Map<String, Value>) -> impl Iterator<Item = i64> {
    let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
    ports.filter_map(|port| int_at(port, "/nodePort")).filter(|number| *number != 0)
}

/// Returns the node ports and the port for health checks of a stored service.
fn held_ports(spec: &Map<String, Value>) -> BTreeSet<i64> {
    let health = health_port(spec).filter(|_| needs_health_check(spec));
    node_ports(spec).chain(health).collect()
}

/// Returns the port for health checks that a service has.
fn health_port(spec: &Map<String, Value>) -> Option<i64> {
    spec.get("healthCheckNodePort").and_then(Value::as_i64).filter(|number| *number != 0)
}

fn number(port: &Map<String, Value>, field: &str) -> i64 {
    port.get(field).and_then(Value::as_i64).unwrap_or_default()
}

/// Returns whether ports without a node port get node ports.
fn wants_node_ports(spec: &Map<String, Value>) -> bool {
    spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false))
}

struct Allocation<'a> {
    cx: &'a WriteContext<'a>,
    services: ResourceId,
    /// The key of the service in the store; empty if it is new.
    key: String,
    /// The name of the service.
    name: String,
    /// The ports that the request names: other entries of the service do not get these ports.
    requested: BTreeSet<i64>,
    /// The ports that the stored service has. The ports are free only after the update.
    held: BTreeSet<i64>,
    /// The ports that are allocated in this write.
    allocated: BTreeSet<i64>,
    /// The cluster address of the stored service; empty if there is none.
    old_address: &'a str,
}

impl Allocation<'_> {
    /// Returns whether another service has the address.
    fn has_address(&self, address: Ipv4Addr) -> bool {
        self.cx.view.is_claimed(&self.services, &address_claim(address), &self.key)
    }

    /// Returns whether a service has the port, including this service.
    fn has_port(&self, port: i64) -> bool {
        self.held.contains(&port)
            || self.allocated.contains(&port)
            || self.cx.view.is_claimed(&self.services, &port_claim(port), &self.key)
    }

    fn allocate_address(&self, spec: &mut Map<String, Value>) -> Result<(), ApiError> {
        if !has_cluster_address(kind(spec)) {
            return Ok(());
        }
        let given = spec.get("clusterIP").and_then(Value::as_str).unwrap_or_default();
        if given == "None" {
            return Ok(());
        }
        if !given.is_empty() {
            // A change of the address is refused by validation.
            if self.old_address.is_empty() {
                self.check_address(spec, given)?;
            }
            return self.check_name(spec, given);
        }
        self.check_name(spec, given)?;
        let range = self.cx.service_range;
        let reserved = range.reserved();
        let dynamic = range.len() - reserved;
        let start = (self.cx.env.random_u64() % u64::from(dynamic)) as u32;
        let address = (0..dynamic)
            .map(|step| reserved + (start + step) % dynamic)
            .chain(0..reserved)
            .map(|offset| range.address(offset))
            .find(|address| !self.has_address(*address))
            .ok_or_else(|| ApiError::internal("failed to allocate a serviceIP: range is full"))?;
        spec.insert("clusterIP".to_owned(), address.to_string().into());
        spec.insert("clusterIPs".to_owned(), json!([address.to_string()]));
        Ok(())
    }

    /// Refuses a service with a name that the owner of an address cannot have. The owner is a separate
    /// object.
    fn check_name(&self, spec: &Map<String, Value>, given: &str) -> Result<(), ApiError> {
        let field = "spec.parentRef.name";
        let mut problems: Vec<FieldError> = names::path_segment_name(&self.name, false)
            .into_iter()
            .map(|problem| FieldError::invalid(field, self.name.as_str(), problem))
            .collect();
        if self.name.is_empty() {
            problems = vec![FieldError::required(field, "")];
        }
        if problems.is_empty() || self.cx.is_dry_run {
            return Ok(());
        }
        let address = if given.is_empty() { "10.0.0.2" } else { given };
        let why = ApiError::invalid("networking.k8s.io", "IPAddress", address, &problems);
        let list = spec.get("clusterIPs").cloned().unwrap_or_else(|| json!([given]));
        let place = if given.is_empty() { String::new() } else { format!(" {given}") };
        let why = format!("failed to allocate IP{place}: {}", why.status().message);
        Err(self.refuse(FieldError::invalid("spec.clusterIPs", list, why)))
    }

    /// Refuses an address outside of the range, and an address of another service.
    fn check_address(&self, spec: &Map<String, Value>, given: &str) -> Result<(), ApiError> {
        let Ok(address) = given.parse::<Ipv4Addr>() else { return Ok(()) };
        let range = self.cx.service_range;
        let is_dry_run = self.cx.is_dry_run;
        let why = match (range.contains(address), is_dry_run) {
            (false, true) => format!(
                "the provided IP ({given}) is not in the valid range. The range of valid IPs is {range}"
            ),
            (false, false) => "the provided network does not match the current range".to_owned(),
            // A dry run allocates nothing, and ignores the allocations of other services.
            (true, false) if self.has_address(address) => "provided IP is already allocated".to_owned(),
            (true, _) => return Ok(()),
        };
        let list = spec.get("clusterIPs").cloned().unwrap_or_else(|| json!([given]));
        let why = format!("failed to allocate IP {given}: {why}");
        Err(self.refuse(FieldError::invalid("spec.clusterIPs", list, why)))
    }

    /// Gives a new service its node ports. Entries with the same port, such as TCP and UDP of a name server, share a node port.
    fn allocate_node_ports(&mut self, spec: &mut Map<String, Value>) -> Result<(), ApiError> {
        let wanted = wants_node_ports(spec);
        let mut requested = BTreeMap::new();
        for port in items_mut(spec, "ports").filter(|port| number(port, "nodePort") != 0) {
            requested.entry(number(port, "port")).or_insert(number(port, "nodePort"));
        }
        let mut shared = BTreeMap::new();
        for (index, port) in items_mut(spec, "ports").enumerate() {
            let (key, given) = (number(port, "port"), number(port, "nodePort"));
            if given == 0 && !wanted {
                continue;
            }
            let node_port = match (shared.get(&key), requested.get(&key)) {
                (Some(known), _) if given == 0 || given == *known => *known,
                (Some(_), _) => self.take_node_port(index, given)?,
                (None, Some(found)) => self.take_node_port(index, *found)?,
                (None, None) => self.free_port("nodePort")?,
            };
            shared.entry(key).or_insert(node_port);
            port.insert("nodePort".to_owned(), node_port.into());
        }
        Ok(())
    }

    /// Gives an updated service its node ports: each entry without a node port gets a port of its own.
    fn update_node_ports(
        &mut self,
        spec: &mut Map<String, Value>,
        before: &Map<String, Value>,
    ) -> Result<(), ApiError> {
        let wanted = wants_node_ports(spec);
        let kept: BTreeSet<i64> = node_ports(before).collect();
        let mut seen = BTreeSet::new();
        for (index, port) in items_mut(spec, "ports").enumerate() {
            let node_port = match number(port, "nodePort") {
                0 if !wanted => continue,
                0 => self.free_port("nodePort")?,
                given if kept.contains(&given) || self.allocated.contains(&given) => given,
                given => self.take_node_port(index, given)?,
            };
            port.insert("nodePort".to_owned(), node_port.into());
            let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or_default();
            if !seen.insert((protocol.to_owned(), node_port)) {
                let why = format!("duplicate nodePort: {{{protocol} {node_port}}}");
                return Err(ApiError::unexplained(why));
            }
        }
        Ok(())
    }

    fn allocate_health_port(&mut self, spec: &mut Map<String, Value>) -> Result<(), ApiError> {
        let number = match health_port(spec) {
            None => self.free_port("HealthCheck NodePort")?,
            Some(given) => self.take_port(given).map_err(|why| {
                let what = format!("failed to allocate requested HealthCheck NodePort {given}");
                ApiError::internal(format!("{what}: {why}"))
            })?,
        };
        spec.insert("healthCheckNodePort".to_owned(), number.into());
        Ok(())
    }

    fn take_node_port(&mut self, index: usize, number: i64) -> Result<i64, ApiError> {
        let field = format!("spec.ports[{index}].nodePort");
        self.take_port(number).map_err(|why| self.refuse(FieldError::invalid(field, number, why)))
    }

    /// Allocates a port that the request names. An error says why the port is not free.
    fn take_port(&mut self, number: i64) -> Result<i64, &'static str> {
        if !(FIRST_PORT..FIRST_PORT + PORTS).contains(&number) {
            return Err("provided port is not in the valid range. The range of valid ports is 30000-32767");
        }
        if self.has_port(number) {
            return Err("provided port is already allocated");
        }
        self.allocated.insert(number);
        Ok(number)
    }

    fn free_port(&mut self, what: &str) -> Result<i64, ApiError> {
        let start = (self.cx.env.random_u64() % PORTS as u64) as i64;
        let number = (0..PORTS)
            .map(|step| FIRST_PORT + (start + step) % PORTS)
            .find(|number| !self.requested.contains(number) && !self.has_port(*number))
            .ok_or_else(|| ApiError::internal(format!("failed to allocate a {what}: range is full")))?;
        self.allocated.insert(number);
        Ok(number)
    }

    fn refuse(&self, error: FieldError) -> ApiError {
        ApiError::invalid("", "Service", &self.name, &[error])
    }
}
