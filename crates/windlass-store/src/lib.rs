//! The state of an API server: the revisioned store, the clock, the metadata of objects, and the evaluation of roles.
//!
//! A [`Store`] has a global revision, an event log for each resource, and a lock for commits. A [`View`] is an immutable picture
//! of the whole server at a revision. [`Authorizer`] decides about requests by the roles in a store. The crate knows no HTTP and
//! no kind.
#![forbid(unsafe_code)]

// From the surface down: a module uses only modules further down.
mod access;

mod store;

mod clock;
pub mod object_meta;

pub use access::{
    Attributes, Authorizer, Decision, Identity, RoleRef, Rule, aggregate, forbidden, service_account_groups,
    service_account_name, split_node, split_service_account,
};
pub use clock::{Clock, Env, SystemClock, rfc3339};
pub use store::{
    Change, CommitError, Derived, Draft, Event, Expiry, LabelSet, Labels, Layout, Log, ObjectAttrs,
    ResourceId, Retention, Store, Stored, Tail, View, Watched, Write, managed_fields_in, read_value,
    write_object,
};
