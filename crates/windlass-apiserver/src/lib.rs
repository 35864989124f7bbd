//! A Kubernetes API server in a library.
#![forbid(unsafe_code)]

mod auth;
mod env;
mod serve;
mod store;
mod strategy;
pub mod wire;

pub use auth::Identity;
pub use env::{Clock, SystemClock};
pub use serve::{Authority, Body, ClientCertificate, InProcess, Listen, ListenError, Listening};
