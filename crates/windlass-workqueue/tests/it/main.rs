//! The observable behaviour of the queue.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod script;

mod priorities;
mod scenarios;
mod shut_down;

mod model;
mod threads;

mod fairness;
mod metrics;
mod reclaim;
mod shell;
