//! The Deployment controller.

mod annotations;
mod conditions;
mod controller;
mod plan;
mod rolling;
mod scaling;

pub(crate) use self::controller::controller;
