//! The controllers that write the EndpointSlices and Endpoints of Services with a selector.

mod legacy;
mod legacy_plan;
mod member;
mod slice_plan;
mod slices;

pub(crate) use self::legacy::controller as endpoints_controller;
pub(crate) use self::slices::controller as endpoint_slice_controller;
