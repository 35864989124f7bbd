//! The CronJob controller.

mod controller;
mod plan;
mod schedule;

pub(crate) use self::controller::controller;
