//! Addresses from pools: an `IPPool` has CIDRs, an `IPClaim` takes an address from one, and no address is ever given twice.
//!
//! The server decides who gets an address: it belongs to the claim for which the object `IPAddress` of its name was created. Everything
//! else, counts and free ranges, follows from these objects.
//!
//! Other programs read them with [`client`], which is generated: `examples/addresses.rs` does.
#![forbid(unsafe_code)]

mod address;
mod claim;
mod claims;
pub mod client;
mod ledger;
mod pool;
mod pools;
mod ranges;

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

/// Returns the manager of one replica, as the program runs it.
pub fn manager(client: Client) -> Manager {
    add_to(Manager::new(client)).sharding(Sharding::new(NAME))
}
