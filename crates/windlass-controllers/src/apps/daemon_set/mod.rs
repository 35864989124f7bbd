//! The DaemonSet controller.

mod controller;
mod failures;
mod history;
mod nodes;
mod plan;
mod template;

pub(crate) use self::controller::controller;
