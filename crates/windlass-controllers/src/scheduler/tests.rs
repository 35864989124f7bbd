//! Decisions about pods, with the messages of kube-scheduler.

mod cluster;
mod fit;
mod model;
mod placement;
mod preemption;
mod state;
