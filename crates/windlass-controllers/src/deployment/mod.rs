//! The Deployment controller.

mod conditions;
mod controller;
mod plan;
mod rolling;

pub(crate) use self::controller::controller;
