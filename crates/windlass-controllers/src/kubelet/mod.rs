//! A node. The pods are simulated: pods start, become ready, end and terminate, but no container runs. With a
//! [runtime](windlass_node::Runtime), the programs of some pods run.
//!
//! Annotations of a simulated pod control the simulation; see [`script`].

mod addresses;
mod choice;
mod command;
mod container;
mod controller;
mod dns;
mod files;
mod lifecycle;
mod node;
mod node_keeper;
mod node_pool;
mod node_registry;
mod pod_event;
mod readiness;
mod real;
mod resolve;
mod restart;
mod running_pods;
pub mod script;
mod services;
pub mod streams;
mod waiting_pods;

pub use self::choice::PodMode;
pub(crate) use self::controller::{RunPods, controllers};
pub(crate) use self::dns::create_service as create_dns_service;
pub(crate) use self::node_keeper::{controller as node_keeper, register as register_nodes};
pub use self::node_pool::NodePool;
pub(crate) use self::node_registry::NodeRegistry;
pub use self::running_pods::{ContainerLogs, PodNetwork, RunningPods};
