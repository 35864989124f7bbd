//! The scheduler: chooses nodes for pods, and makes room for pods of a high priority.

mod controller;
mod events;
mod state;
mod waiting;

mod decision;
mod preemption;
mod scores;

mod diagnosis;
mod filters;

mod pod_affinity;
mod spread;
mod volumes;

mod cluster;
mod pod_class;
mod quantity;
mod rejection;
mod requests;

pub(crate) use self::controller::controller;

#[cfg(test)]
mod tests;
