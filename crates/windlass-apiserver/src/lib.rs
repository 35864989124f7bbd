//! A Kubernetes API server in a library.
#![forbid(unsafe_code)]

pub mod wire;
