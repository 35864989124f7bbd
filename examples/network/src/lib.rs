//! Networks in OpenStack Neutron, with a controller in the way of client-go.
//!
//! The operator follows the article's Go program: [`client`] is generated from the types in [`apis`]; a
//! [`Controller`] takes the clientset and an informer, fills a queue of keys from event handlers, and works
//! on the keys. [`neutron`] has the client of Neutron's API, and a stand-in for demos and tests.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod controller;

pub mod client;
mod report;

mod sync;

mod desired;

pub mod neutron;

mod cidr;

pub mod apis;

pub use self::{
    cidr::{Cidr, InvalidSpec},
    controller::{Controller, Options, runnable},
    desired::Desired,
};
