//! A client of the API of OpenStack Neutron, as far as networks and subnets go, and a stand-in of the server.
//!
//! The client has typed requests, pages through lists, and obtains and renews tokens of Keystone. The client
//! never repeats a request: the controller's queue repeats keys, with back-off.

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
