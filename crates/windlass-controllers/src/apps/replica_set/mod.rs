//! The controllers of ReplicaSets and ReplicationControllers.

mod controller;
mod owner;
mod plan;

pub(crate) use self::controller::controller;
pub(crate) use self::owner::ReplicaOwner;
