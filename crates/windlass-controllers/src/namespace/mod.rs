//! Empties namespaces that are to go, and then lets them go.

mod controller;
mod progress;
mod sweep;

pub(crate) use self::controller::controller;
