//! A control plane whose node runs programs, with a runtime that a test directs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod fake_runtime;
mod network;
mod pods;
mod stage;
