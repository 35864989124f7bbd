//! The health of nodes: nodes without heartbeats, the taints of nodes, and the eviction of pods.

mod controller;
mod eviction;
mod heartbeats;
mod taints;

pub(crate) use self::controller::controller;
pub(crate) use self::eviction::controller as taint_eviction;
