//! Binds claims to volumes, creates the claims of ephemeral volumes, and keeps used claims.

mod controller;
mod ephemeral;
mod protection;

pub(crate) use self::controller::controller;
pub(crate) use self::ephemeral::controller as ephemeral;
pub(crate) use self::protection::controller as protection;
