//! The users of requests, and the rights of the users.

mod authorize;
mod rbac;

mod identity;

pub use self::authorize::{Attributes, Authorizer, Decision, forbidden};
pub use self::identity::{
    Identity, service_account_groups, service_account_name, split_node, split_service_account,
};
pub use self::rbac::{RoleRef, Rule, aggregate};
