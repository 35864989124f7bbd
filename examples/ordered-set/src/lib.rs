//! OrderedSet: pods with an order, like the pods of a StatefulSet. Pod 0 is created first, pod 1 when pod 0
//! is running and ready, and so on; pods are deleted and updated from the last pod down.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod controller;

mod orphans;
mod report;

mod plan;

mod waiting;

mod pods;

mod ordered_set;

pub use self::{
    controller::controller,
    ordered_set::{OrderedSet, OrderedSetSpec, OrderedSetStatus, Waiting},
};
