//! The admission of a write by the quotas of a namespace, and the new usage of the quotas.

use std::collections::BTreeSet;
use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

use super::evaluator::{Evaluator, Operation};
use super::resource_list::{ResourceList, add, growth, mask, shown};
use super::resource_quota::Quota;
use crate::subresource::Subresource;

/// A write of an object.
pub struct Request<'a> {
    /// How objects of the resource count.
    pub evaluator: Evaluator,
    /// The verb of the request.
    pub operation: Operation,
    /// The subresource that is written.
    pub subresource: &'a Subresource,
    /// The object that would be stored.
    pub object: &'a Value,
    /// The stored object of an update.
    pub old: Option<&'a Value>,
    /// The time of the request.
    pub now: Timestamp,
}

/// The usage of a quota after a write.
#[derive(Clone, Debug)]
pub struct QuotaUsage {
    /// The position of the quota in the list.
    pub quota: usize,
    /// The new `status.used`.
    pub used: ResourceList,
}

/// The reason why a write does not fit, in the words of kube-apiserver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceeded(String);

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Exceeded {}

/// Checks a write against the quotas of the namespace, and returns the quotas that the write changes.
///
/// # Errors
/// A quota would be exceeded, the usage of a quota is not known yet, or the object does not specify a
/// required amount.
pub fn charge(quotas: &[Quota], request: &Request<'_>) -> Result<Vec<QuotaUsage>, Exceeded> {
    let Request { evaluator, object, old, .. } = request;
    if !evaluator.handles(request.operation, request.subresource, object, *old) {
        return Ok(Vec::new());
    }
    let mut matching = Vec::new();
    for (position, quota) in quotas.iter().enumerate() {
        if evaluator.matches(quota, object) {
            check_known(evaluator, quota, object)?;
            matching.push((position, quota));
        }
    }
    if matching.is_empty() {
        return Ok(Vec::new());
    }
    let usage = evaluator.usage(object, request.now);
    let negative: Vec<&str> =
        usage.iter().filter(|(_, amount)| amount.signum() < 0).map(|(name, _)| name.as_str()).collect();
    if !negative.is_empty() {
        return Err(Exceeded(format!("quota usage is negative for resource(s): {}", negative.join(","))));
    }
    let before = old.map(|old| (old, evaluator.usage(old, request.now)));
    let mut charges = Vec::new();
    for (position, quota) in matching {
        let mut requested = match &before {
            Some((old, before)) if evaluator.matches(quota, old) => growth(&usage, before),
            _ => usage.clone(),
        };
        requested.retain(|_, amount| amount.signum() != 0);
        let requested = mask(&requested, &quota.hard);
        if requested.is_empty() {
            continue;
        }
        let mut used = quota.used.clone();
        add(&mut used, &requested);
        if *request.subresource != Subresource::Status {
            check_limits(quota, &requested, &used)?;
        }
        charges.push(QuotaUsage { quota: position, used });
    }
    Ok(charges)
}

/// Checks that a quota can decide about an object: the object specifies the required amounts, and the usage
/// is known.
fn check_known(evaluator: &Evaluator, quota: &Quota, object: &Value) -> Result<(), Exceeded> {
    let limited: BTreeSet<&str> =
        quota.hard.keys().map(String::as_str).filter(|name| evaluator.uses(name)).collect();
    evaluator
        .check_constraints(&limited, object)
        .map_err(|why| Exceeded(format!("failed quota: {}: {why}", quota.name)))?;
    if limited.iter().all(|name| quota.used.contains_key(*name)) {
        return Ok(());
    }
    let names: Vec<&str> = limited.into_iter().collect();
    Err(Exceeded(format!("status unknown for quota: {}, resources: {}", quota.name, names.join(","))))
}

fn check_limits(quota: &Quota, requested: &ResourceList, used: &ResourceList) -> Result<(), Exceeded> {
    let mut exceeded = requested.clone();
    exceeded.retain(|name, _| used.get(name) > quota.hard.get(name));
    if exceeded.is_empty() {
        return Ok(());
    }
    Err(Exceeded(format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        quota.name,
        shown(&exceeded),
        shown(&mask(&quota.used, &exceeded)),
        shown(&mask(&quota.hard, &exceeded)),
    )))
}
