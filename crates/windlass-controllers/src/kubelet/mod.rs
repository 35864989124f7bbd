//! A node with simulated pods: they start, become ready, end and terminate, but no container runs.
//!
//! Annotations of a pod set what it does; see [`script`].

mod addresses;
mod command;
mod container;
mod controller;
mod lifecycle;
mod node;
mod readiness;
mod real;
mod resolve;
pub mod script;
pub mod streams;

pub(crate) use self::controller::controller;
pub(crate) use self::node::keep as keep_node;
