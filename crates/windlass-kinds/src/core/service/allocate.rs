//! Allocation of cluster addresses and node ports: the next free one after a random start.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use serde_json::{Map, Value, json};
use windlass_schema::FieldError;
use windlass_store::{ResourceId, object_meta as meta};
use windlass_wire::{ApiError, names};

use super::claims::{address_claim, port_claim};
use super::{has_cluster_address, has_node_ports, kind, needs_health_check};
use crate::json::{int_at, items_mut, spec_mut, text};
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
        own_ports: BTreeSet::new(),
        old_address: old.and_then(|old| old.pointer("/spec/clusterIP")?.as_str()).unwrap_or_default(),
    };
    let spec = spec_mut(object);
    allocation.allocate_address(spec)?;
    if old.is_some() {
        refuse_duplicates(spec)?;
    }
    allocation.allocate_ports(spec)
}

/// Refuses an update with two equal node ports. The real server fails on such ports before the validation.
fn refuse_duplicates(spec: &Map<String, Value>) -> Result<(), ApiError> {
    let ports = spec.get("ports").and_then(Value::as_array).filter(|_| has_node_ports(kind(spec)));
    let mut seen = BTreeSet::new();
    for port in ports.into_iter().flatten() {
        let (protocol, number) = (text(port, "protocol"), int_at(port, "/nodePort").unwrap_or_default());
        if number != 0 && !seen.insert((protocol, number)) {
            return Err(ApiError::unexplained(format!("duplicate nodePort: {{{protocol} {number}}}")));
        }
    }
    Ok(())
}

struct Allocation<'a> {
    cx: &'a WriteContext<'a>,
    services: ResourceId,
    /// The key of the service in the store; empty if it is new.
    key: String,
    /// The name of the service.
    name: String,
    /// The ports of the service.
    own_ports: BTreeSet<i64>,
    /// The cluster address of the stored service; empty if there is none.
    old_address: &'a str,
}

impl Allocation<'_> {
    /// Returns whether another service has the address.
    fn has_address(&self, address: Ipv4Addr) -> bool {
        self.cx.view.is_claimed(&self.services, &address_claim(address), &self.key)
    }

    /// Returns whether another service has the port.
    fn has_port(&self, port: i64) -> bool {
        self.cx.view.is_claimed(&self.services, &port_claim(port), &self.key)
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

    fn allocate_ports(&mut self, spec: &mut Map<String, Value>) -> Result<(), ApiError> {
        if !has_node_ports(kind(spec)) {
            return Ok(());
        }
        let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
        let given = ports.map(|port| int_at(port, "/nodePort").unwrap_or_default());
        for (index, number) in given.enumerate().filter(|(_, number)| *number != 0) {
            self.check_port(number, &format!("spec.ports[{index}].nodePort"))?;
            self.own_ports.insert(number);
        }
        let wanted = spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false));
        for port in items_mut(spec, "ports").filter(|_| wanted) {
            if port.get("nodePort").and_then(Value::as_i64).unwrap_or_default() == 0 {
                port.insert("nodePort".to_owned(), self.free_port("nodePort")?.into());
            }
        }
        if needs_health_check(spec) {
            let given = spec.get("healthCheckNodePort").and_then(Value::as_i64).unwrap_or_default();
            if given == 0 {
                let number = self.free_port("HealthCheck NodePort")?;
                spec.insert("healthCheckNodePort".to_owned(), number.into());
            } else if self.has_port(given) {
                return Err(ApiError::internal(format!(
                    "failed to allocate requested HealthCheck NodePort {given}: provided port is already allocated"
                )));
            }
        }
        Ok(())
    }

    /// Refuses a port outside of the range, and a port of another service.
    fn check_port(&self, number: i64, field: &str) -> Result<(), ApiError> {
        let why = if !(FIRST_PORT..FIRST_PORT + PORTS).contains(&number) {
            "provided port is not in the valid range. The range of valid ports is 30000-32767"
        } else if self.has_port(number) {
            "provided port is already allocated"
        } else {
            return Ok(());
        };
        Err(self.refuse(FieldError::invalid(field, number, why)))
    }

    fn free_port(&mut self, what: &str) -> Result<i64, ApiError> {
        let start = (self.cx.env.random_u64() % PORTS as u64) as i64;
        let number = (0..PORTS)
            .map(|step| FIRST_PORT + (start + step) % PORTS)
            .find(|number| !self.own_ports.contains(number) && !self.has_port(*number))
            .ok_or_else(|| ApiError::internal(format!("failed to allocate a {what}: range is full")))?;
        self.own_ports.insert(number);
        Ok(number)
    }

    fn refuse(&self, error: FieldError) -> ApiError {
        ApiError::invalid("", "Service", &self.name, &[error])
    }
}
