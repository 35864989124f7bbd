//! A Kubernetes API server in a library.
//!
//! [`Server`] holds everything in memory and answers as the real kube-apiserver does. There are two ways in: as a
//! `tower` service in the same process ([`Server::service`]), and over TLS ([`Server::listen`]).
#![forbid(unsafe_code)]

use windlass_kinds::custom_resource_definition as crd;
use windlass_store as store;
use windlass_store::object_meta as meta;
use windlass_wire as wire;

// From the surface down: a module uses only modules below.
mod server;

mod api;
mod intercept;
mod serve;

mod housekeeping;

mod bootstrap;
mod metrics;

mod discovery;
mod openapi;
mod openid;
mod zpages;

mod aggregate;

mod registry;
mod streams;

mod cluster_roles;
mod definitions;
mod flow_schemas;
mod ip_addresses;

mod api_services;
mod state;

mod aggregated_roles;

mod admission;

mod respond;
mod route;
mod table;

mod upgrade;

mod content;

mod body;

mod managed_fields;
mod resource;

mod conversion;

mod webhook;

mod network;
mod nodes;

mod flow_control;
mod listeners;

mod auth;

mod apart;
mod counters;
mod object_size;
mod reply_memory;
mod verb;
mod work_memory;

pub use admission::trace::{PolicyPart, PolicyStep};
pub use auth::{Identity, TokenKeyError, TokenKeys};
pub use body::Body;
pub use discovery::HealthCheck;
pub use intercept::RequestInterceptor;
pub use nodes::{
    Attach, Command, Connection, Container, Duplex, LogRequest, NodeError, Nodes, Pod, Reader, Session,
    Target, TerminalSize, Writer,
};
pub use serve::{
    CertificateAuthority, CertificateError, CertificateTextError, ClientCertificate, InProcess, Listen,
    ListenError, RunningListener, ServerCertificate, allocator_is_mimalloc,
};
pub use server::{BuildError, Server, ServerBuilder, Snapshot};
#[doc(hidden)]
pub use streams::parsers;
pub use windlass_kinds::{AdmissionPlugin, ServiceClusterIpRange, ServiceRangeError};
pub use windlass_schema::{KubernetesVersion, UnknownKubernetesVersion};
pub use windlass_store::{Clock, SystemClock};
