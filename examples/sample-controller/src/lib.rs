//! Kubernetes' sample-controller, in Rust: a `Foo` names a Deployment and says how many replicas it has.
//!
//! It does what `k8s.io/sample-controller` does, with the same names, texts and Events: `tests/it/original.rs` runs both on equal clusters and
//! compares every object and Event.
#![forbid(unsafe_code)]

mod controller;
mod foo;

pub use self::{
    controller::{AGENT_NAME, controller},
    foo::{Foo, FooSpec, FooStatus, crd_without_status},
};
