//! The runtime from outside, on an API server in the test's own process. One binary, so that it is linked once.

mod apply;
mod caches;
mod client;
mod clusters;
mod controller;
mod events;
mod failover;
mod fairness;
mod fake;
mod fault;
mod finalizer;
mod fixture;
mod leader_election;
mod manager;
mod metric_names;
mod metrics_access;
mod outcomes;
mod parts;
mod read_your_writes;
mod restart;
mod server;
mod sharding;
mod sources;
mod undecodable;
mod webhooks;
mod write;
