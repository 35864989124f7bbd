//! The controller of PodDisruptionBudgets.

mod controller;
mod plan;
mod scale;

pub(crate) use self::controller::controller;
