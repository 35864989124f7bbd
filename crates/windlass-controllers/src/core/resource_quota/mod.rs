//! The quota controller: keeps `status.hard` and `status.used` of ResourceQuotas.
//!
//! The API server adds to the usage when admitting a write. This controller subtracts unused amounts, and
//! counts objects that are older than the quota. The controller counts live objects at a revision that is not
//! older than the quota, and writes the status only if the quota has not changed meanwhile: objects that were
//! admitted in between are therefore never left out.

mod controller;
mod count;
mod replenish;

pub(crate) use self::controller::controller;
