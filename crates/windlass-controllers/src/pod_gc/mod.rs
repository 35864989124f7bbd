//! The pod garbage collector: deletes pods that have ended when there are too many, and those that no kubelet will delete.

mod controller;
mod plan;

pub(crate) use self::controller::controller;
