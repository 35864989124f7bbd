//! The operator on a control plane in the test's process.

mod claims;
mod clientset;
mod crd;
mod dev;
mod faults;
mod load;
mod pools;
mod rights;
mod user;

use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);
