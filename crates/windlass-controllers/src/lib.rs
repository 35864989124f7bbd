//! The controllers that a cluster has and an API server has not.
//!
//! They make [a cluster](Controllers) of an API server, for a laptop and for tests: owners collect what they own, namespaces
//! end, every namespace has its service account, pods are placed on a node and run there, and Deployments become ready. The
//! node and its pods are simulated: there are no containers, but everything that an operator sees of them. What a pod does can
//! be told by [annotations](script).
//!
//! All are written with `windlass-runtime`, as any operator would be. What each decides is a state machine without I/O
//! (`garbage_collector::graph`, `kubelet::lifecycle`, `scheduler::fit`, `deployment::plan`, …), tested on its own.
#![forbid(unsafe_code)]

mod claim;
mod cluster;
mod conditions;
mod deployment;
mod garbage_collector;
mod kubelet;
mod labels;
mod namespace;
mod namespaced;
mod node_lifecycle;
mod replica_set;
mod resources;
mod root_ca;
mod scheduler;
mod service_account;

pub use self::cluster::Controllers;
pub use self::kubelet::script;
