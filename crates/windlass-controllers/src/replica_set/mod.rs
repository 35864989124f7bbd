//! Keeps as many pods as a ReplicaSet says.

mod plan;
