//! The controllers, observed through clients.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod autoscalers;
mod claims;
mod endpoints;
mod garbage;
mod jobs;
mod migrations;
mod missing_objects;
mod namespaces;
mod nodes;
mod pods;
mod policies;
mod preemption;
mod quotas;
mod scale;
mod scheduling;
mod scripts;
mod support;
mod tokens;
mod volumes;
mod workloads;

// As in `windlass cluster`.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
