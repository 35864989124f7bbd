//! Binds claims to volumes, provisions volumes for claims, and reclaims the volumes of deleted claims.

mod claims;
mod matching;
mod names;
mod provisioner;
mod volumes;

pub(crate) use self::claims::controller as claims;
pub(crate) use self::matching::{best_match, fits_node, is_candidate};
pub(crate) use self::names::{SELECTED_NODE, class_of, is_bound, waits_for_consumer};
pub(crate) use self::provisioner::{can_provision, keep_default_class};
pub(crate) use self::volumes::controller as volumes;
