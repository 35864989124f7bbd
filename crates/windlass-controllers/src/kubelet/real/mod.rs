//! Pods whose programs run: the state machine, and the work of the state machine.

mod action;
mod check;
mod container;
mod memory;
mod message;
mod node;
mod pod;
mod probe;
mod roles;
mod running;
mod spec;
mod status;
mod token;
mod worker;

pub(super) use self::node::RealNode;
pub(super) use self::worker::Worker;

#[cfg(test)]
mod tests;
