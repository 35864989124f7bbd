//! The runtime in namespaces, from the outside. Skipped, with the reason, where the machine does not allow namespaces.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

mod containers;
#[cfg(feature = "cri")]
mod cri;
mod faults;
mod fixture;
mod images;
mod network;
mod streams;
mod stub;
