//! The `windlass` command from outside: as a process, driven by signals and by real kubectls.
//!
//! Each test has a control plane of its own. Tests that need kubectl say so on stderr where there is none, and pass.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod process;

mod kubectl;

mod command;

mod builtins;
mod cascades;
mod custom_resources;
mod demo;
mod describing;
mod editing;
mod errors;
mod outputs;
mod rollouts;
mod versions;
