//! Kubernetes' sample-controller, in Rust: a `Foo` names a Deployment and the number of replicas.
//!
//! The operator behaves like `k8s.io/sample-controller`, with the same names, texts and Events:
//! `tests/it/original.rs` runs both programs on equal clusters and compares every object and Event.
#![forbid(unsafe_code)]

mod controller;
mod foo;

pub use self::{
    controller::{AGENT_NAME, controller},
    foo::{Foo, FooSpec, FooStatus, crd_without_status},
};
