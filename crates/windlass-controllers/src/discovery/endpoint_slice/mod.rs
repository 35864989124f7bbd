//! The controllers that write the EndpointSlices of Services with a selector, and the EndpointSlices of Endpoints that a
//! user writes for a Service without a selector.

mod controller;
mod mirror_controller;
mod mirror_plan;
mod plan;

pub(crate) use self::controller::controller;
pub(crate) use self::mirror_controller::controller as mirroring_controller;
