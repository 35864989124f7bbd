//! The specification of pods, in pods and in the templates of workloads.

pub(crate) mod annotations;
pub(crate) mod app_armor;
pub(crate) mod container;
pub(crate) mod defaults;
pub(crate) mod disabled;
pub(crate) mod environment;
pub(crate) mod ephemeral;
pub(crate) mod mounts;
pub(crate) mod network;
pub(crate) mod operating_system;
pub(crate) mod probe;
pub(crate) mod projected;
pub(crate) mod references;
pub(crate) mod resources;
pub(crate) mod scheduling;
pub(crate) mod security;
pub(crate) mod validate;
pub(crate) mod volumes;
pub(crate) mod warnings;
