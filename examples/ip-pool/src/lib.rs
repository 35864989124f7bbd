//! Addresses from pools: an `IPPool` has CIDRs, an `IPClaim` takes an address from a pool, and no address is
//! ever given twice.
//!
//! The server decides about addresses: an address belongs to the claim for which the object `IPAddress` with
//! the address as name was created. Counts and free ranges follow from these objects.
//!
//! Other programs read the objects with [`client`], which is generated: see `examples/addresses.rs`.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod claims;
pub mod client;
mod pools;

mod address;
mod claim;
mod ledger;

mod ranges;

mod pool;

use kube::{Client, CustomResourceExt};
use windlass::{Manager, sharding::Sharding};

pub use self::{
    address::{ClaimReference, IPAddress, IPAddressSpec, name_of},
    claim::{IPClaim, IPClaimSpec, IPClaimStatus},
    pool::{IPPool, IPPoolSpec, IPPoolStatus},
};

/// The name of the group of replicas.
pub const NAME: &str = "ip-pool";

/// Adds the CRDs and the controllers to a manager.
///
/// Replicas share the claims and pools: a manager needs [`Manager::sharding`].
pub fn add_to(manager: Manager) -> Manager {
    let ledger = ledger::Ledger::new();
    manager
        .crd(IPPool::crd())
        .crd(IPClaim::crd())
        .crd(IPAddress::crd())
        .controller(claims::controller(ledger.clone()))
        .controller(pools::controller(ledger))
}

/// Returns the manager of a replica, as in the program.
pub fn manager(client: Client) -> Manager {
    add_to(Manager::new(client)).sharding(Sharding::new(NAME))
}
