//! Scales workloads by metrics. The metrics are [annotations](metrics) of pods and other objects, because nothing measures simulated pods.

mod controller;
mod history;
mod limits;
mod metrics;
mod plan;
mod pod_groups;
mod replicas;
mod scale;

pub(crate) use self::controller::controller;
