//! What a cluster does and a bare API server does not, seen through its clients.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod garbage;
mod namespaces;
mod nodes;
mod pods;
mod support;
mod workloads;
