//! The operator on a control plane in the test's process.

mod crd;
mod dev;
mod faults;
mod foo;
mod original;
mod reconcile;
mod rights;
mod user;

use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
