//! Pods whose programs run: the state machine, and the work that it asks for.

mod action;
mod container;
mod pod;
mod probe;
mod status;
