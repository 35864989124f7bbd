//! A node whose pods are simulated: they are placed, start, become ready, end, and stop, with no container behind them.
//!
//! What a pod does can be told by its annotations; see [`script`].

mod addresses;
mod container;
mod controller;
mod lifecycle;
mod node;
mod readiness;
pub mod script;

pub(crate) use self::controller::controller;
pub(crate) use self::node::keep as keep_node;
