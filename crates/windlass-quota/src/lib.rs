//! Resource quotas: how much of a `ResourceQuota` an object uses, and whether a write fits into it.
//!
//! The admission plugin of the API server and the quota controller count by the same rules, so both use this crate, as the original
//! components share `pkg/quota`. Everything here is a function of JSON values and the time; nothing knows a store or a client.
//!
//! ```
//! use serde_json::json;
//! use windlass_quota::{Evaluator, Operation, Quota, Request, charge};
//!
//! let full = Quota::of(&json!({
//!     "metadata": {"name": "two-pods"},
//!     "status": {"hard": {"pods": "2"}, "used": {"pods": "2"}}
//! }));
//! let request = Request {
//!     evaluator: Evaluator::of("", "pods").expect("pods are counted"),
//!     operation: Operation::Create,
//!     subresource: "",
//!     object: &json!({"metadata": {"name": "third"}, "spec": {"containers": []}}),
//!     old: None,
//!     now: jiff::Timestamp::UNIX_EPOCH,
//! };
//! let refused = charge(&[full], &request).unwrap_err();
//! assert_eq!(refused.to_string(), "exceeded quota: two-pods, requested: pods=1, used: pods=2, limited: pods=2");
//! ```
#![forbid(unsafe_code)]

mod amounts;
mod charge;
mod claims;
mod evaluator;
mod pod;
mod pod_resources;
mod quota;
mod scope;
mod services;
#[cfg(test)]
mod tests;

pub use self::amounts::{Amounts, amounts};
pub use self::charge::{Charge, Exceeded, Request, charge};
pub use self::evaluator::{Evaluator, Operation};
pub use self::pod::is_counted as is_pod_counted;
pub use self::pod_resources::{containers, total};
pub use self::quota::Quota;
