//! Resource quotas: the usage of a `ResourceQuota` by an object, and the admission of a write.
//!
//! The admission plugin of the API server and the quota controller share this module, because both count by
//! the same rules, as the original components share `pkg/quota`. All functions take JSON values and the time,
//! and know no store and no client.
//!
//! ```
//! use serde_json::json;
//! use windlass_kinds::Subresource;
//! use windlass_kinds::quota::{Evaluator, Operation, Quota, Request, charge};
//!
//! let full = Quota::of(&json!({
//!     "metadata": {"name": "two-pods"},
//!     "status": {"hard": {"pods": "2"}, "used": {"pods": "2"}}
//! }));
//! let request = Request {
//!     evaluator: Evaluator::of("", "pods").expect("pods are counted"),
//!     operation: Operation::Create,
//!     subresource: &Subresource::None,
//!     object: &json!({"metadata": {"name": "third"}, "spec": {"containers": []}}),
//!     old: None,
//!     now: jiff::Timestamp::UNIX_EPOCH,
//! };
//! let refused = charge(&[full], &request).unwrap_err();
//! assert_eq!(refused.to_string(), "exceeded quota: two-pods, requested: pods=1, used: pods=2, limited: pods=2");
//! ```
mod charge;

mod evaluator;

mod claims;
mod resource_quota;
mod services;

mod scope;

mod pod;

mod pod_resources;

mod resource_list;

#[cfg(test)]
mod tests;

pub use self::charge::{Exceeded, QuotaUsage, Request, charge};
pub use self::evaluator::{Evaluator, Operation};
pub use self::pod::is_counted as is_pod_counted;
pub(crate) use self::pod_resources::is_pod_level;
pub use self::pod_resources::{containers, total};
pub use self::resource_list::{ResourceList, amounts};
pub use self::resource_quota::Quota;
