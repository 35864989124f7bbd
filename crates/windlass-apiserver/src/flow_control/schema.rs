//! A flow schema.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;
use serde_json::Value;

use super::level::{Level, Refused};
use super::rule::Rule;
use crate::auth::{Attributes, Identity};

/// The property of a request that tells the flows of a schema apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distinguisher {
    None,
    User,
    Namespace,
}

/// A flow schema with an existing priority level.
pub(super) struct Schema {
    pub(super) name: String,
    /// The place among all schemas: the schema with the lowest number is matched first.
    precedence: i64,
    pub(super) uid: HeaderValue,
    pub(super) level_uid: HeaderValue,
    pub(super) distinguisher: Distinguisher,
    rules: Vec<Rule>,
    pub(super) level: Arc<Level>,
    pub(super) counts: Arc<Counts>,
}

impl Schema {
    pub(super) fn read(
        name: &str,
        object: &Value,
        level: Arc<Level>,
        level_uid: HeaderValue,
        counts: Arc<Counts>,
    ) -> Self {
        let spec = &object["spec"];
        let rules = spec["rules"].as_array().into_iter().flatten();
        Self {
            name: name.to_owned(),
            precedence: spec["matchingPrecedence"].as_i64().unwrap_or(1_000),
            uid: uid_of(object),
            level_uid,
            distinguisher: match spec["distinguisherMethod"]["type"].as_str() {
                Some("ByUser") => Distinguisher::User,
                Some("ByNamespace") => Distinguisher::Namespace,
                _ => Distinguisher::None,
            },
            rules: rules.map(Rule::read).collect(),
            level,
            counts,
        }
    }

    /// Makes a schema that no object describes.
    pub(super) fn imaginary(name: &str, rules: &Value, level: Arc<Level>, level_uid: HeaderValue) -> Self {
        let counts = Arc::new(Counts::new(name, &level.name));
        Self::read(name, rules, level, level_uid, counts)
    }

    pub(super) fn matches(&self, identity: &Identity, request: &Attributes<'_>) -> bool {
        self.rules.iter().any(|rule| rule.matches(identity, request))
    }

    pub(super) fn place(&self) -> (i64, &str) {
        (self.precedence, &self.name)
    }
}

/// Returns the uid of an object for a response header; empty for an object without a uid.
pub(super) fn uid_of(object: &Value) -> HeaderValue {
    HeaderValue::from_str(crate::meta::uid(object)).unwrap_or(HeaderValue::from_static(""))
}

/// The requests of a flow schema.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) schema: String,
    pub(crate) level: String,
    executing: AtomicU64,
    waiting: AtomicU64,
    dispatched: AtomicU64,
    refused: [AtomicU64; Refused::ALL.len()],
}

impl Counts {
    pub(super) fn new(schema: &str, level: &str) -> Self {
        Self {
            schema: schema.to_owned(),
            level: level.to_owned(),
            executing: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            dispatched: AtomicU64::new(0),
            refused: Default::default(),
        }
    }

    pub(super) fn is_for(&self, schema: &str, level: &str) -> bool {
        self.schema == schema && self.level == level
    }

    pub(super) fn begin(&self) {
        self.executing.fetch_add(1, Ordering::Relaxed);
        self.dispatched.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end(&self) {
        self.executing.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn wait(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn end_wait(&self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn refuse(&self, why: Refused) {
        self.refused[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests that have a seat.
    pub(crate) fn executing(&self) -> u64 {
        self.executing.load(Ordering::Relaxed)
    }

    /// Returns the number of requests in a queue.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns the number of requests that got a seat.
    pub(crate) fn dispatched(&self) -> u64 {
        self.dispatched.load(Ordering::Relaxed)
    }

    /// Returns the number of refused requests by reason.
    pub(crate) fn refused(&self) -> impl Iterator<Item = (Refused, u64)> {
        Refused::ALL.into_iter().map(|why| (why, self.refused[why as usize].load(Ordering::Relaxed)))
    }
}
