//! The controllers that write the EndpointSlices and Endpoints of Services with a selector, and the
//! EndpointSlices of Endpoints that a user writes for a Service without a selector.

mod legacy;
mod legacy_plan;
mod member;
mod mirror_plan;
mod mirrors;
mod slice_plan;
mod slices;

pub(crate) use self::legacy::controller as endpoints_controller;
pub(crate) use self::mirrors::controller as endpoint_slice_mirroring_controller;
pub(crate) use self::slices::controller as endpoint_slice_controller;
