//! The CronJob controller.

mod controller;
mod field;
mod plan;
mod schedule;

pub(crate) use self::controller::controller;
