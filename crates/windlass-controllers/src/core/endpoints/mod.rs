//! The controller that writes the Endpoints of Services with a selector.

mod controller;
pub(crate) mod member;
mod plan;

pub(crate) use self::controller::controller;
pub(crate) use self::plan::{Addresses, order, with_equal_addresses};
