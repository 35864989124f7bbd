//! Tests of an API server under hostile conditions: attacks one by one ([`hostile`]), a crowd of hostile clients ([`crowd`]), random
//! requests to all resources ([`fuzz`]), and many writers and watchers with a check of the result ([`concurrency`]).
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the results are printed")]

// From the surface down: a module uses only modules further down.
pub mod concurrency;
pub mod crowd;
pub mod fuzz;
pub mod hostile;

mod attack;
mod value;
mod watcher;

mod schema;
mod webhook;

mod https;

mod target;

mod client;
mod usage;

pub use client::{Call, Client, Connection, Reply};
pub use https::HttpsServer;
pub use target::{Target, serve};

/// The result of a test. The message of an error is printed.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;
