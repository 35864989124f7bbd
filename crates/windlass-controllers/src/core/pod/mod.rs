//! The pod garbage collector: deletes surplus ended pods, and pods that no kubelet will delete.

mod controller;
mod plan;

pub(crate) use self::controller::controller;
