//! The parts of workloads: counters of replicas, rollouts, the pods of the template, validation.

pub(crate) mod counters;
pub(crate) mod rollout;
pub(crate) mod table;
pub(crate) mod template;
pub(crate) mod validate;
