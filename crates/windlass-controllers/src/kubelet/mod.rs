//! A node whose pods are simulated.

mod addresses;
mod container;
mod lifecycle;
mod readiness;
mod script;
