//! Endpoint slices.

pub(crate) mod endpoint_slice;
