//! The controllers of kube-controller-manager that a development cluster needs, a scheduler, and a simulated node.
//!
//! [`Controllers`] turns an API server into a cluster, for a laptop and for tests: owned objects are
//! garbage-collected, namespaces are finalized, every namespace has a service account, pods are scheduled and
//! run, and Deployments become ready. The node and its pods are simulated: no container runs, but objects,
//! conditions and events are the same as on a real node. [Annotations](script) script a pod. With a
//! [`RunningPods`], programs of pods run on this machine.
//!
//! All controllers are written with `windlass-runtime`. The decisions are state machines without I/O, with
//! tests: `garbage_collector::graph`, `kubelet::lifecycle`, `scheduler::decision`, `apps::deployment::plan` and others.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod cluster;
mod readiness;

mod admissionregistration;
mod autoscaling;
mod batch;
mod certificates;
mod discovery;
mod garbage_collector;
mod policy;
mod scheduler;
mod storagemigration;

mod core;
mod kubelet;

mod apps;
mod storage;

mod finalizer;
mod node_fit;
mod percent;
mod resources;

mod host_ports;
mod pod_control;
mod pod_disruption;
mod pods;
mod wake;

mod adoption;
mod conditions;

mod component;
mod labels;

pub use self::admissionregistration::validating_admission_policy::type_warnings;
pub use self::certificates::certificate_signing_request::{SigningAuthority, SigningAuthorityError};
pub use self::cluster::Controllers;
pub use self::kubelet::{ContainerLogs, NodePool, PodMode, PodNetwork, RunningPods, script, streams};
pub use self::readiness::can_run_pods;
