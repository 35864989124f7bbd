//! Networks in OpenStack Neutron, with a controller in the way of client-go.
//!
//! The operator follows the article's Go program: [`client`] is generated from the types in [`apis`]; a
//! [`Controller`] takes the clientset and an informer, fills a queue of keys from event handlers, and works
//! on the keys. [`neutron`] has the client of Neutron's API, and a stand-in for demos and tests.
#![forbid(unsafe_code)]

pub mod apis;
pub mod client;
mod controller;
mod desired;
pub mod neutron;
mod report;
mod sync;

pub use self::{
    controller::{Controller, Options, runnable},
    desired::{Cidr, Desired, InvalidSpec},
};
