//! A Kubernetes API server in a library.
//!
//! [`Server`] holds everything in memory and answers as the real kube-apiserver does. There are two ways in: as a
//! `tower` service in the same process ([`Server::service`]), and over TLS ([`Server::listen`]).
#![forbid(unsafe_code)]

use windlass_wire as wire;

mod server;

mod serve;

mod api;
mod auth;
mod respond;
mod route;

mod registry;

mod state;

mod meta;
mod table;

mod bootstrap;
mod crd;
mod definitions;
mod discovery;
mod openapi;
mod resource;
mod strategy;

mod env;
mod store;

pub use api::Intercept;
pub use auth::Identity;
pub use env::{Clock, SystemClock};
pub use serve::{
    Authority, Body, CertificateError, ClientCertificate, InProcess, Listen, ListenError, Listening,
};
pub use server::{BuildError, Server, ServerBuilder, Snapshot};
