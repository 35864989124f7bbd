//! Reclaims the volumes of deleted claims, matches claims with volumes, and provisions simulated volumes.

mod controller;
mod matching;
mod names;
mod protection;
mod provisioner;

pub(crate) use self::controller::controller;
pub(crate) use self::matching::{best_match, capacity, fits_node, is_candidate, mismatch, requested};
pub(crate) use self::names::{
    ASKED_PROVISIONERS, BIND_COMPLETED, BOUND_BY_CONTROLLER, COMPONENT, PROVISIONED_BY, SELECTED_NODE,
    class_of, is_bound, is_reserved_for, lacks_class, volume_of,
};
pub(crate) use self::protection::controller as protection;
pub(crate) use self::provisioner::{reference, volume};
