//! Finds a node for every pod that has none.

mod controller;
mod fit;
mod ledger;
mod quantity;

pub(crate) use self::controller::controller;
