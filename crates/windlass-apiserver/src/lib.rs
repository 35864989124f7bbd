//! A Kubernetes API server in a library.
#![forbid(unsafe_code)]

mod env;
mod store;
mod strategy;
pub mod wire;

pub use env::{Clock, SystemClock};
