//! The built-in kinds of Kubernetes: everything that is true of a kind, in one folder for each kind.
//!
//! [`of`] returns the [`Kind`] of a resource: the [`KindConfig`], which needs no code, and an implementation of each of a
//! few traits: [`Defaults`], [`Prepare`], [`Allocate`], [`Admission`], [`Validate`] and [`Delete`]. All functions take objects as
//! JSON values. The crate knows no HTTP.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod builtin;

mod storage;

mod admissionregistration;
mod apiextensions;
mod apiregistration;
mod apps;
mod authentication;
mod authorization;
mod autoscaling;
mod batch;
mod coordination;
mod core;
mod discovery;
mod flowcontrol;
mod networking;
mod node;
mod policy;
mod rbac;
mod resource;
mod scheduling;
mod storagemigration;

mod certificates;

pub mod quota;

mod workload;

mod pod_template;
mod volume;

mod selector;
mod signer_name;

mod addresses;
mod checks;

mod kind;

mod admission_plugins;
mod service_range;
mod subresource;

mod field;
mod json;

pub mod cron;
pub mod table;

pub mod kind_names;
pub mod resources;

#[cfg(test)]
mod tests;

pub use admission_plugins::{AdmissionPlugin, AdmissionPlugins};
pub use apiextensions::custom_resource_definition;
pub use apiregistration::api_service;
pub use builtin::of;
pub use certificates::{attributes as subject_attributes, organizations};
pub use kind::{
    Admission, AdmittedBy, Allocate, Defaults, Delete, Generation, Grace, IfEmpty, Kind, KindConfig, Lookups,
    MetadataChecks, Prepare, Validate, WriteContext, Writes, WritesOf,
};
pub use service_range::{ServiceClusterIpRange, ServiceRangeError};
pub use subresource::Subresource;
