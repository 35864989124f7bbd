//! The ReplicaSet controller.

mod controller;
mod plan;

pub(crate) use self::controller::controller;
