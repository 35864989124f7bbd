//! Makes Neutron agree with an object.

use std::collections::HashSet;

use windlass::ObjectKey;

use crate::{
    Desired, InvalidSpec,
    neutron::{Error, Network, NetworkChange, Neutron, NewNetwork, NewSubnet, Subnet, SubnetChange},
};

/// The longest name in Neutron.
const LONGEST_NAME: usize = 255;

/// The owner of a controller's networks in Neutron. The description of a network has the owner; the name of a
/// network is the key of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    description: String,
}

/// The known facts about an object's network before the first request to Neutron.
pub(crate) struct Known<'a> {
    /// The key of the object: the name of the network and of the subnet.
    pub(crate) key: &'a ObjectKey,
    pub(crate) owner: &'a Owner,
    /// The ID in the status of the object. The ID decides, because the network may have been renamed in
    /// Neutron.
    pub(crate) network_id: Option<&'a str>,
    /// As above, of the subnet.
    pub(crate) subnet_id: Option<&'a str>,
    /// Returns whether an ID is in the status of another object. The network of another object is left alone,
    /// regardless of the name.
    pub(crate) is_taken: Box<dyn Fn(&str) -> bool + Send + Sync + 'a>,
}

/// The network and subnet of an object in Neutron.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Actual {
    pub(crate) network_id: String,
    pub(crate) subnet_id: String,
    /// True if the network or the subnet was missing, although the status of the object has the ID.
    pub(crate) is_recreated: bool,
}

/// Why Neutron does not agree with an object.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The spec asks for a change that Neutron cannot make.
    Immutable(String),
    Neutron(Error),
}

/// The difference between a subnet and the wanted subnet.
#[derive(Debug, PartialEq, Eq)]
enum Difference<'s> {
    Missing,
    None(&'s Subnet),
    Change(&'s Subnet, SubnetChange),
    Cidr(&'s Subnet),
}

impl Owner {
    /// Returns an owner with a name.
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

/// Creates or changes the network and the subnet of an object.
///
/// Each step reads the present state before a write, and can therefore be repeated after a request with an
/// unknown result. If such a request has made a second network, one of the two networks is deleted.
pub(crate) async fn ensure(
    neutron: &Neutron,
    known: &Known<'_>,
    desired: &Desired,
) -> Result<Actual, Failure> {
    let (network, duplicates) = choose(find(neutron, known).await?, known.network_id);
    for duplicate in duplicates {
        tracing::warn!(key = %known.key, duplicate.id, "deleting a second network of the same object");
        neutron.delete_network(&duplicate.id).await?;
    }
    let (name, description) = (known.key.to_string(), known.owner.description.clone());
    let mut is_recreated = network.is_none() && known.network_id.is_some();
    let network = match network {
        None => neutron.create_network(&NewNetwork { name, description }).await?,
        Some(network) => match change_of(&network, known) {
            None => network,
            Some(change) => neutron.update_network(&network.id, &change).await?,
        },
    };
    let subnets = neutron.subnets(&[("network_id", &network.id)]).await?;
    let subnet_id = match difference(desired, known, &subnets) {
        Difference::None(subnet) => subnet.id.clone(),
        Difference::Missing => {
            is_recreated |= known.subnet_id.is_some();
            neutron.create_subnet(&new_subnet(desired, known.key, &network)).await?.id
        }
        Difference::Change(subnet, change) => neutron.update_subnet(&subnet.id, &change).await?.id,
        Difference::Cidr(subnet) => {
            return Err(Failure::Immutable(format!(
                "spec.cidr: the subnet in Neutron has {}, which cannot change; set it back, or delete the Network and create it again",
                subnet.cidr
            )));
        }
    };
    Ok(Actual { network_id: network.id, subnet_id, is_recreated })
}

/// Deletes all networks of an object. A network without a mark of this controller stays: the ID in the status
/// may be the ID of any network, and only the ID is left if a deletion is repeated.
pub(crate) async fn delete(neutron: &Neutron, known: &Known<'_>) -> Result<(), Error> {
    for network in find(neutron, known).await? {
        if known.has_mark(&network) || has_subnet(neutron, known, &network).await? {
            neutron.delete_network(&network.id).await?;
            tracing::info!(key = %known.key, network.id, "deleted from Neutron");
        }
    }
    Ok(())
}

/// Returns whether a network has the subnet of an object, by the subnet's name: the network may have been
/// renamed.
async fn has_subnet(neutron: &Neutron, known: &Known<'_>, network: &Network) -> Result<bool, Error> {
    let subnets = neutron.subnets(&[("network_id", &network.id)]).await?;
    Ok(subnets.iter().any(|subnet| subnet.name == known.key.as_str()))
}

/// Returns the names of the networks that are in no object's status, as keys.
pub(crate) async fn keys(
    neutron: &Neutron,
    owner: &Owner,
    held: &HashSet<String>,
) -> Result<Vec<ObjectKey>, Error> {
    let networks = neutron.networks(&[("description", &owner.description)]).await?;
    let free = networks.iter().filter(|network| !held.contains(&network.id));
    Ok(free.filter_map(|network| network.name.parse().ok()).collect())
}

/// Returns the network of the status, and the networks with the name and the owner of the object, which come
/// from requests with a lost response.
async fn find(neutron: &Neutron, known: &Known<'_>) -> Result<Vec<Network>, Error> {
    let by_name = [("name", known.key.as_str()), ("description", &known.owner.description)];
    let mut found = neutron.networks(&by_name).await?;
    found.retain(|network| known.is_own(network) || !(known.is_taken)(&network.id));
    // An ID in the status of two objects belongs to the object with the network's name.
    if let Some(id) = known.network_id.filter(|id| !(known.is_taken)(id))
        && !found.iter().any(|network| known.is_own(network))
    {
        // Every user with the right to write the status can put the ID of any network there. The ID counts if
        // the network has a mark of this controller, or if there is no other network.
        let by_id = neutron.network(id).await?;
        let is_alone = found.is_empty();
        found.extend(by_id.filter(|network| is_alone || known.has_mark(network)));
    }
    Ok(found)
}

impl Known<'_> {
    fn is_own(&self, network: &Network) -> bool {
        self.network_id == Some(&network.id)
    }

    /// Returns whether the network has the name or the owner of the object.
    fn has_mark(&self, network: &Network) -> bool {
        network.name == self.key.as_str() || network.description == self.owner.description
    }
}

/// Chooses the network that stays: the network in the status, else the oldest. Every replica chooses the same
/// network.
fn choose(mut found: Vec<Network>, known: Option<&str>) -> (Option<Network>, Vec<Network>) {
    found.sort_by(|a, b| {
        let rank = |network: &Network| (Some(network.id.as_str()) != known, network.created_at.clone());
        rank(a).cmp(&rank(b)).then_with(|| a.id.cmp(&b.id))
    });
    let mut found = found.into_iter();
    (found.next(), found.collect())
}

/// Returns the needed change of a network.
fn change_of(network: &Network, known: &Known<'_>) -> Option<NetworkChange> {
    let change = NetworkChange {
        name: differs(&network.name, known.key.as_str().to_owned()),
        description: differs(&network.description, known.owner.description.clone()),
        admin_state_up: differs(&network.admin_state_up, true),
    };
    (change != NetworkChange::default()).then_some(change)
}

/// Compares the subnets of a network with the wanted subnet. Subnets that users have added are left alone.
fn difference<'s>(desired: &Desired, known: &Known<'_>, subnets: &'s [Subnet]) -> Difference<'s> {
    let cidr = desired.cidr.to_string();
    let of_status = subnets.iter().find(|subnet| Some(subnet.id.as_str()) == known.subnet_id);
    let by_cidr = || subnets.iter().find(|subnet| subnet.cidr == cidr);
    let by_name = || subnets.iter().find(|subnet| subnet.name == known.key.as_str());
    let Some(subnet) = of_status.or_else(by_cidr).or_else(by_name) else { return Difference::Missing };
    if subnet.cidr != cidr {
        return Difference::Cidr(subnet);
    }
    let mut pools = subnet.allocation_pools.clone();
    pools.sort_unstable();
    let gateway_ip = differs(&subnet.gateway_ip, Some(desired.gateway)).flatten();
    let allocation_pools = differs(&pools, desired.allocation_pools());
    let name = differs(&subnet.name, known.key.as_str().to_owned());
    let enable_dhcp = differs(&subnet.enable_dhcp, true);
    let change = SubnetChange { name, gateway_ip, allocation_pools, enable_dhcp };
    if change == SubnetChange::default() {
        Difference::None(subnet)
    } else {
        Difference::Change(subnet, change)
    }
}

/// Returns the wanted value if the actual value differs.
fn differs<T: PartialEq>(actual: &T, wanted: T) -> Option<T> {
    (*actual != wanted).then_some(wanted)
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
    use std::net::IpAddr;

    use serde_json::json;

    use super::*;
    use crate::apis::samplecrd::v1::NetworkSpec;

    fn network(id: &str, created_at: &str) -> Network {
        let network = json!({ "id": id, "name": "default/a", "admin_state_up": true, "status": "ACTIVE", "created_at": created_at });
        serde_json::from_value(network).expect("a network")
    }

    fn subnet(name: &str, cidr: &str, gateway: &str) -> Subnet {
        let pools =
            Desired { cidr: cidr.parse().expect("a CIDR"), gateway: gateway.parse().expect("an address") };
        let subnet = json!({ "id": name, "name": name, "network_id": "n", "cidr": cidr, "gateway_ip": gateway, "enable_dhcp": true,
            "allocation_pools": pools.allocation_pools() });
        serde_json::from_value(subnet).expect("a subnet")
    }

    /// Calls `test` with the known facts about the object `default/a`. The status names a subnet.
    fn with_known<T>(subnet_id: Option<&str>, test: impl FnOnce(&Known<'_>) -> T) -> T {
        let (key, owner) = (ObjectKey::namespaced("default", "a"), Owner::new("kubernetes"));
        test(&Known { key: &key, owner: &owner, network_id: None, subnet_id, is_taken: Box::new(|_| false) })
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
        let of = |subnets: &[Subnet]| {
            with_known(None, |known| match difference(&desired, known, subnets) {
                Difference::Missing => "missing",
                Difference::None(_) => "none",
                Difference::Change(..) => "change",
                Difference::Cidr(_) => "CIDR",
            })
        };
        assert_eq!(of(&[subnet("default/a", "fd00::/64", "fd00::1")]), "none");
        assert_eq!(of(&[subnet("default/a", "fd00::/64", "fd00::2")]), "change");
        assert_eq!(of(&[subnet("default/a", "fd01::/64", "fd01::1")]), "CIDR");
        assert_eq!(of(&[subnet("by hand", "fd01::/64", "fd01::1")]), "missing");
        assert_eq!(of(&[]), "missing");
    }

    #[test]
    fn each_field_of_a_subnet_is_changed_back() {
        let spec = NetworkSpec { cidr: "10.0.0.0/24".to_owned(), gateway: "10.0.0.9".to_owned() };
        let desired = Desired::of(&spec).expect("valid");
        let change = |change: &dyn Fn(&mut Subnet)| {
            let mut subnets = [subnet("default/a", "10.0.0.0/24", "10.0.0.9")];
            change(&mut subnets[0]);
            with_known(Some("default/a"), |known| match difference(&desired, known, &subnets) {
                Difference::Change(_, change) => change,
                other => panic!("{other:?}"),
            })
        };
        let nothing = SubnetChange::default();
        let named = change(&|subnet| "x".clone_into(&mut subnet.name));
        assert_eq!(named, SubnetChange { name: Some("default/a".to_owned()), ..nothing.clone() });
        let dhcp = change(&|subnet| subnet.enable_dhcp = false);
        assert_eq!(dhcp, SubnetChange { enable_dhcp: Some(true), ..nothing.clone() });
        let pools = change(&|subnet| subnet.allocation_pools.truncate(1));
        assert_eq!(
            pools,
            SubnetChange { allocation_pools: Some(desired.allocation_pools()), ..nothing.clone() }
        );
        let gateway = change(&|subnet| subnet.gateway_ip = None);
        let wanted: IpAddr = "10.0.0.9".parse().expect("an address");
        assert_eq!(gateway, SubnetChange { gateway_ip: Some(wanted), ..nothing });
        // The order of pools has no meaning.
        let mut turned = subnet("default/a", "10.0.0.0/24", "10.0.0.9");
        turned.allocation_pools.reverse();
        with_known(None, |known| {
            assert!(matches!(difference(&desired, known, &[turned.clone()]), Difference::None(_)));
        });
    }

    #[test]
    fn the_subnet_of_the_status_is_the_one() {
        let spec = NetworkSpec { cidr: "10.1.0.0/24".to_owned(), gateway: "10.1.0.1".to_owned() };
        let desired = Desired::of(&spec).expect("valid");
        let renamed = [subnet("renamed", "10.0.0.0/24", "10.0.0.1")];
        let is_cidr =
            |id| with_known(id, |known| matches!(difference(&desired, known, &renamed), Difference::Cidr(_)));
        assert!(is_cidr(Some("renamed")) && !is_cidr(Some("another")) && !is_cidr(None));
    }
}
