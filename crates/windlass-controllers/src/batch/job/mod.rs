//! The controllers of Jobs: pods, and the removal of Jobs after `ttlSecondsAfterFinished`.

mod back_off;
mod conditions;
mod controller;
mod failure_policy;
mod indexes;
mod orphans;
mod plan;
mod pod;
mod success_policy;
mod tracking;
mod ttl;

pub(crate) use self::conditions::{FinishedAs, finished};
pub(crate) use self::controller::controller;
pub(crate) use self::orphans::controller as orphans_controller;
pub(crate) use self::ttl::controller as ttl_controller;
