//! Runs the `windlass` command as a process, with signals and with kubectl.
//!
//! Each test has a separate control plane. Tests that need kubectl pass without kubectl, with a message on
//! stderr.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod process;

mod kubectl;

mod operator;

mod command;

mod assets;
mod builtins;
mod cascades;
mod completions;
mod conversions;
mod custom_resources;
mod demo;
mod deploying;
mod describing;
mod drains;
mod editing;
mod errors;
mod failures;
mod generating;
mod installing;
mod interruptions;
mod loading;
mod nodes;
mod orphans;
mod outputs;
mod policies;
mod project;
mod pushing;
mod rollouts;
mod signing;
mod users;
mod versions;
mod workloads;
