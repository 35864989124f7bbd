//! The StatefulSet controller.

mod claims;
mod controller;
mod history;
mod identity;
mod plan;

pub(crate) use self::controller::controller;
