//! The controllers that a cluster has and an API server has not.
#![forbid(unsafe_code)]
// The shells that drive these state machines follow.
#![allow(dead_code)]

mod conditions;
mod deployment;
mod garbage_collector;
mod kubelet;
mod namespace;
mod replica_set;
mod scheduler;
