//! Makes Neutron agree with what an object asks for.

use windlass::ObjectKey;

use crate::{
    desired::{Desired, InvalidSpec},
    neutron::{Error, Network, NetworkChange, Neutron, NewNetwork, NewSubnet, Subnet, SubnetChange},
};

/// The longest name in Neutron.
const LONGEST_NAME: usize = 255;

/// Whose networks in Neutron a controller works on. It is in their description; their name is the key of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    description: String,
}

/// What Neutron has of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actual {
    pub(crate) network_id: String,
    pub(crate) subnet_id: String,
}

/// Why Neutron does not agree with an object.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The spec asks for a change that Neutron cannot make.
    Immutable(String),
    Neutron(Error),
}

/// How a subnet differs from what is wanted.
#[derive(Debug, PartialEq, Eq)]
enum Difference<'s> {
    Missing,
    None(&'s Subnet),
    Gateway(&'s Subnet),
    Cidr(&'s Subnet),
}

impl Owner {
    /// An owner by its name.
    pub fn new(name: &str) -> Self {
        Self { description: format!("samplecrd.k8s.io networks of {name}") }
    }
}

/// Checks that Neutron can have a network of this name.
pub(crate) fn check_name(key: &ObjectKey) -> Result<(), InvalidSpec> {
    if key.as_str().len() <= LONGEST_NAME {
        return Ok(());
    }
    let message = format!("the name in Neutron, {key}, is longer than {LONGEST_NAME} characters");
    Err(InvalidSpec { reason: "NameTooLong", message })
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Neutron(error)
    }
}

/// Creates or changes the network and the subnet of an object. `known` is the ID that its status has.
///
/// Each step looks at what is there before it writes, so that it can be repeated after a request whose fate is not known. If such a
/// request has made a second network, one of them is deleted.
pub(crate) async fn ensure(
    neutron: &Neutron,
    key: &ObjectKey,
    owner: &Owner,
    desired: &Desired,
    known: Option<&str>,
) -> Result<Actual, Failure> {
    let (network, duplicates) = choose(find(neutron, key, owner).await?, known);
    for duplicate in duplicates {
        tracing::warn!(%key, duplicate.id, "deleting a second network of the same object");
        neutron.delete_network(&duplicate.id).await?;
    }
    let network = if let Some(network) = network {
        network
    } else {
        let new = NewNetwork { name: key.to_string(), description: owner.description.clone() };
        neutron.create_network(&new).await?
    };
    if !network.admin_state_up {
        neutron.update_network(&network.id, &NetworkChange { admin_state_up: true }).await?;
    }
    let subnets = neutron.subnets(&[("network_id", &network.id)]).await?;
    let subnet_id = match difference(desired, key.as_str(), &subnets) {
        Difference::None(subnet) => subnet.id.clone(),
        Difference::Missing => neutron.create_subnet(&new_subnet(desired, key, &network)).await?.id,
        Difference::Gateway(subnet) => {
            let allocation_pools = desired.allocation_pools();
            let change = SubnetChange { gateway_ip: desired.gateway, allocation_pools };
            neutron.update_subnet(&subnet.id, &change).await?.id
        }
        Difference::Cidr(subnet) => {
            return Err(Failure::Immutable(format!(
                "spec.cidr: the subnet in Neutron has {}, which cannot change; set it back, or delete the Network and create it again",
                subnet.cidr
            )));
        }
    };
    Ok(Actual { network_id: network.id, subnet_id })
}

/// Deletes all networks of an object.
pub(crate) async fn delete(neutron: &Neutron, key: &ObjectKey, owner: &Owner) -> Result<(), Error> {
    for network in find(neutron, key, owner).await? {
        neutron.delete_network(&network.id).await?;
        tracing::info!(%key, network.id, "deleted from Neutron");
    }
    Ok(())
}

/// Returns the keys of all objects that have a network in Neutron.
pub(crate) async fn keys(neutron: &Neutron, owner: &Owner) -> Result<Vec<ObjectKey>, Error> {
    let networks = neutron.networks(&[("description", &owner.description)]).await?;
    Ok(networks.iter().filter_map(|network| network.name.parse().ok()).collect())
}

async fn find(neutron: &Neutron, key: &ObjectKey, owner: &Owner) -> Result<Vec<Network>, Error> {
    neutron.networks(&[("name", key.as_str()), ("description", &owner.description)]).await
}

/// Chooses the network that stays: the one in the status, else the oldest. Every replica chooses the same.
fn choose(mut found: Vec<Network>, known: Option<&str>) -> (Option<Network>, Vec<Network>) {
    found.sort_by(|a, b| {
        let rank = |network: &Network| (Some(network.id.as_str()) != known, network.created_at.clone());
        rank(a).cmp(&rank(b)).then_with(|| a.id.cmp(&b.id))
    });
    let mut found = found.into_iter();
    (found.next(), found.collect())
}

/// Compares the subnets of a network with what is wanted. Subnets that people have added are left alone.
fn difference<'s>(desired: &Desired, name: &str, subnets: &'s [Subnet]) -> Difference<'s> {
    let cidr = desired.cidr.to_string();
    match subnets.iter().find(|subnet| subnet.cidr == cidr) {
        Some(subnet) if subnet.gateway_ip == Some(desired.gateway) => Difference::None(subnet),
        Some(subnet) => Difference::Gateway(subnet),
        None => {
            subnets.iter().find(|subnet| subnet.name == name).map_or(Difference::Missing, Difference::Cidr)
        }
    }
}

fn new_subnet(desired: &Desired, key: &ObjectKey, network: &Network) -> NewSubnet {
    NewSubnet {
        network_id: network.id.clone(),
        name: key.to_string(),
        cidr: desired.cidr.to_string(),
        gateway_ip: desired.gateway,
        ip_version: desired.cidr.ip_version(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::apis::samplecrd::v1::NetworkSpec;

    fn network(id: &str, created_at: &str) -> Network {
        let network = json!({ "id": id, "name": "default/a", "admin_state_up": true, "status": "ACTIVE", "created_at": created_at });
        serde_json::from_value(network).expect("a network")
    }

    fn subnet(name: &str, cidr: &str, gateway: &str) -> Subnet {
        let subnet =
            json!({ "id": "s", "name": name, "network_id": "n", "cidr": cidr, "gateway_ip": gateway });
        serde_json::from_value(subnet).expect("a subnet")
    }

    #[test]
    fn of_two_networks_the_known_one_stays_and_else_the_oldest() {
        let both = || vec![network("a", "2026-01-02T00:00:00Z"), network("b", "2026-01-01T00:00:00Z")];
        assert_eq!(choose(both(), None).0.expect("one").id, "b");
        let (kept, others) = choose(both(), Some("a"));
        assert_eq!((kept.expect("one").id.as_str(), others[0].id.as_str(), others.len()), ("a", "b", 1));
        assert!(choose(Vec::new(), Some("a")).0.is_none());
    }

    #[test]
    fn a_gateway_can_change_and_a_cidr_cannot() {
        let spec = NetworkSpec { cidr: "fd00::/64".to_owned(), gateway: "fd00:0:0::1".to_owned() };
        let desired = Desired::of(&spec).expect("valid");
        let equal = [subnet("default/a", "fd00::/64", "fd00::1")];
        assert_eq!(difference(&desired, "default/a", &equal), Difference::None(&equal[0]));
        let gateway = [subnet("default/a", "fd00::/64", "fd00::2")];
        assert_eq!(difference(&desired, "default/a", &gateway), Difference::Gateway(&gateway[0]));
        let cidr = [subnet("default/a", "fd01::/64", "fd01::1")];
        assert_eq!(difference(&desired, "default/a", &cidr), Difference::Cidr(&cidr[0]));
        let foreign = [subnet("by hand", "fd01::/64", "fd01::1")];
        assert_eq!(difference(&desired, "default/a", &foreign), Difference::Missing);
    }
}
