//! The controllers of ReplicaSets and ReplicationControllers.

mod controller;
mod owner;
mod plan;

pub(crate) use self::controller::{replica_sets, replication_controllers};
