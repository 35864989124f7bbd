//! OrderedSet: pods with an order, like the pods of a StatefulSet. Pod 0 is created first, pod 1 when pod 0
//! is running and ready, and so on; pods are deleted and updated from the last pod down.
#![forbid(unsafe_code)]

mod controller;
mod ordered_set;
mod orphans;
mod plan;
mod pods;
mod report;
mod waiting;

pub use self::{
    controller::controller,
    ordered_set::{OrderedSet, OrderedSetSpec, OrderedSetStatus},
    waiting::Waiting,
};
