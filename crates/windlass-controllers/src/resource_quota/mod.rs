//! The quota controller: keeps `status.hard` and `status.used` of ResourceQuotas.
//!
//! The API server adds to the usage when it admits a write. This controller gives back what is not used any more, and counts what was
//! there before the quota. It counts live objects at a revision that is not older than the quota, and writes the status only if the
//! quota has not changed meanwhile: an object that was admitted in between is never left out.

mod controller;
mod count;
mod replenish;

pub(crate) use self::controller::controller;
