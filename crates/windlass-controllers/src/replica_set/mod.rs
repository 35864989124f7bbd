//! Keeps as many pods as a ReplicaSet says.

mod controller;
mod plan;

pub(crate) use self::controller::controller;
