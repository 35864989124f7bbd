//! What a cluster does and a bare API server does not, seen through its clients.

mod garbage;
mod namespaces;
mod nodes;
mod pods;
mod support;
mod workloads;
