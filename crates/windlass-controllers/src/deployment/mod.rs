//! Rolls a Deployment's pods from one template to the next.

mod controller;
mod plan;
mod rolling;

pub(crate) use self::controller::controller;
