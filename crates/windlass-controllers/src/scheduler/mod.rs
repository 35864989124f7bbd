//! The scheduler.

mod controller;
mod fit;
mod quantity;
mod requested;

pub(crate) use self::controller::controller;
