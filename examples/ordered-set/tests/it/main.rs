//! The operator on a control plane in the test's process.

mod crd;
mod deletion;
mod dev;
mod faults;
mod history;
mod order;
mod refused;
mod rights;
mod stuck;
mod user;

use std::time::Duration;

const SOON: Duration = Duration::from_secs(30);
