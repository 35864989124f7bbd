//! A client of the API of OpenStack Neutron, as far as networks and subnets go, and a stand-in of the server.
//!
//! The client has typed requests, pages through lists, and obtains and renews tokens of Keystone. It never repeats a request by itself: the
//! controller's queue does that, with back-off.

mod api;
mod client;
mod error;
mod keystone;
pub mod stand_in;
mod transport;

pub use self::{
    api::{AllocationPool, Network, NetworkChange, NewNetwork, NewSubnet, Subnet, SubnetChange},
    client::{Neutron, NeutronConfig},
    error::Error,
    keystone::Credentials,
};
