//! The wire: what requests and responses look like, apart from what they mean.

mod group;
mod status;

pub use group::GroupResource;
pub use status::{ApiError, Cause, Denied, Details, Status};
