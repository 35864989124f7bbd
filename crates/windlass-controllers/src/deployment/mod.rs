//! The Deployment controller.

mod controller;
mod plan;
mod rolling;

pub(crate) use self::controller::controller;
