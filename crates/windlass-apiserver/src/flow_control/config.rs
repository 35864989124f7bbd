//! The flow schemas and priority levels at a revision.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;
use serde_json::{Value, json};

use super::level::{Level, Limits};
use super::queue::QueueLimits;
use super::schema::{Counts, Schema, uid_of};
use crate::auth::{Attributes, Identity};
use crate::store::{ResourceId, View};
use windlass_kinds::resources::{FLOW_SCHEMAS as SCHEMAS, PRIORITY_LEVELS as LEVELS};

/// The schema and the level of requests without limits. Both exist even without objects.
const EXEMPT: &str = "exempt";
/// The schema and the level of requests that no other schema matches. Both exist even without objects.
const CATCH_ALL: &str = "catch-all";
/// The shares of the level `catch-all` without an object.
const CATCH_ALL_SHARES: u32 = 5;
/// The default of `nominalConcurrencyShares`.
const SHARES: u64 = 30;

/// The flow schemas and priority levels at a revision.
pub(super) struct Config {
    /// `None` without a view.
    changed: Option<Changes>,
    /// The revision of the last view with these flow schemas and priority levels.
    seen: AtomicU64,
    /// In the order of matching.
    schemas: Vec<Arc<Schema>>,
    catch_all: Arc<Schema>,
    levels: Vec<ConfiguredLevel>,
}

/// A priority level with the part of an object that is not a limit.
struct ConfiguredLevel {
    level: Arc<Level>,
    uid: HeaderValue,
    seats: u32,
}

/// The limits that an object asks for.
struct Wanted {
    name: String,
    uid: HeaderValue,
    is_exempt: bool,
    shares: u32,
    queue: Option<QueueLimits>,
}

impl Wanted {
    fn imaginary(name: &str, shares: u32) -> Self {
        let (name, uid) = (name.to_owned(), HeaderValue::from_static(""));
        Self { is_exempt: name == EXEMPT, name, uid, shares, queue: None }
    }

    /// Reads a priority level. Returns `None` for a level that kube-apiserver ignores.
    fn read(name: &str, object: &Value) -> Option<Self> {
        let spec = &object["spec"];
        let is_exempt = spec["type"] == "Exempt";
        let (limited, exempt) = (spec["limited"].is_object(), spec["exempt"].is_object());
        if is_exempt != (name == EXEMPT) || limited == is_exempt || exempt != is_exempt {
            return None;
        }
        let number = |value: &Value, default: u64| value.as_u64().unwrap_or(default);
        let (shares, response) = if is_exempt {
            (number(&spec["exempt"]["nominalConcurrencyShares"], 0), &Value::Null)
        } else {
            (number(&spec["limited"]["nominalConcurrencyShares"], SHARES), &spec["limited"]["limitResponse"])
        };
        let queuing = &response["queuing"];
        if !is_exempt && (response["type"] == "Reject") == queuing.is_object() {
            return None;
        }
        let size = |value: &Value, default| usize::try_from(number(value, default)).unwrap_or(usize::MAX);
        let queue = queuing.is_object().then(|| {
            let length = size(&queuing["queueLengthLimit"], 50);
            let total = size(&queuing["queues"], 64).saturating_mul(length);
            QueueLimits { flow: size(&queuing["handSize"], 8).saturating_mul(length).min(total), total }
        });
        let shares = u32::try_from(shares).unwrap_or(u32::MAX);
        Some(Self { name: name.to_owned(), uid: uid_of(object), is_exempt, shares, queue })
    }

    /// Returns the level with the limits, with the requests of the level `before`.
    fn configure(self, before: Option<&Arc<Level>>, seats: u32) -> ConfiguredLevel {
        let limits = (!self.is_exempt).then_some(Limits { seats, queue: self.queue });
        let level = match (before, limits) {
            (Some(level), limits) if level.is_exempt() == limits.is_none() => {
                if let Some(limits) = limits {
                    level.limit(limits);
                }
                Arc::clone(level)
            }
            _ => Arc::new(Level::new(&self.name, limits)),
        };
        ConfiguredLevel { level, uid: self.uid, seats }
    }
}

/// The revisions of the last writes of flow schemas and of priority levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Changes {
    schemas: u64,
    levels: u64,
}

impl Changes {
    pub(crate) fn of(view: &View) -> Self {
        Self { schemas: view.changed(&SCHEMAS), levels: view.changed(&LEVELS) }
    }
}

/// Shares `seats`, rounded up.
fn nominal(seats: u32, shares: u32, all: u64) -> u32 {
    let exact = (u64::from(seats) * u64::from(shares)).div_ceil(all.max(1));
    u32::try_from(exact).unwrap_or(u32::MAX)
}

impl Config {
    /// Returns the configuration without objects.
    pub(super) fn mandatory(seats: u32) -> Self {
        Self::new(None, Vec::new(), &[], seats, None)
    }

    /// Returns the configuration of the objects in `view`, with the requests of the configuration `before`.
    pub(super) fn of(view: &View, seats: u32, before: &Self) -> Self {
        let values = |id: &ResourceId| -> Vec<(String, Value)> {
            view.range(id, None).map(|(name, stored)| (name.to_string(), stored.value())).collect()
        };
        let wanted = values(&LEVELS).iter().filter_map(|(name, object)| Wanted::read(name, object)).collect();
        let config = Self::new(Some(Changes::of(view)), wanted, &values(&SCHEMAS), seats, Some(before));
        config.seen.store(view.revision(), Ordering::Relaxed);
        config
    }

    fn new(
        changed: Option<Changes>,
        mut wanted: Vec<Wanted>,
        objects: &[(String, Value)],
        seats: u32,
        before: Option<&Self>,
    ) -> Self {
        for (name, shares) in [(EXEMPT, 0), (CATCH_ALL, CATCH_ALL_SHARES)] {
            if !wanted.iter().any(|level| level.name == name) {
                wanted.push(Wanted::imaginary(name, shares));
            }
        }
        wanted.sort_by(|a, b| a.name.cmp(&b.name));
        let all = wanted.iter().map(|level| u64::from(level.shares)).sum();
        let old = |name: &str| Some(&before?.level(name)?.level);
        let levels: Vec<ConfiguredLevel> = wanted
            .into_iter()
            .map(|level| {
                let (old, seats) = (old(&level.name), nominal(seats, level.shares, all));
                level.configure(old, seats)
            })
            .collect();
        let of_name = |name: &str| levels.iter().find(|known| known.level.name == name);
        let mut schemas: Vec<Arc<Schema>> = objects
            .iter()
            .filter_map(|(name, object)| {
                let level = of_name(object["spec"]["priorityLevelConfiguration"]["name"].as_str()?)?;
                let counts = before.and_then(|before| before.counts(name, &level.level.name));
                let counts = counts.unwrap_or_else(|| Arc::new(Counts::new(name, &level.level.name)));
                let (uid, level) = (level.uid.clone(), Arc::clone(&level.level));
                Some(Arc::new(Schema::read(name, object, level, uid, counts)))
            })
            .collect();
        schemas.sort_by(|a, b| a.place().cmp(&b.place()));
        let imaginary = |name: &str, group: &str| {
            // Both levels were added above.
            let level = of_name(name)
                .map_or_else(|| Arc::new(Level::new(name, None)), |known| Arc::clone(&known.level));
            let uid = of_name(name).map_or(HeaderValue::from_static(""), |known| known.uid.clone());
            Arc::new(Schema::imaginary(name, &everything_of(group), level, uid))
        };
        if !schemas.iter().any(|schema| schema.name == EXEMPT) {
            schemas.insert(0, imaginary(EXEMPT, Identity::MASTERS));
        }
        let catch_all = schemas.iter().find(|schema| schema.name == CATCH_ALL).map(Arc::clone);
        let catch_all = catch_all.unwrap_or_else(|| {
            let schema = imaginary(CATCH_ALL, "*");
            schemas.push(Arc::clone(&schema));
            schema
        });
        Self { changed, seen: AtomicU64::new(0), schemas, catch_all, levels }
    }

    /// Returns whether the configuration is that of `view`.
    pub(super) fn is_current(&self, view: &View) -> bool {
        let revision = view.revision();
        if self.seen.load(Ordering::Relaxed) == revision {
            return true;
        }
        let is_current = self.changed == Some(Changes::of(view));
        if is_current {
            self.seen.store(revision, Ordering::Relaxed);
        }
        is_current
    }

    /// Returns the first schema that matches a request.
    pub(super) fn schema_of(&self, identity: &Identity, request: &Attributes<'_>) -> Arc<Schema> {
        let found = self.schemas.iter().find(|schema| schema.matches(identity, request));
        Arc::clone(found.unwrap_or(&self.catch_all))
    }

    pub(super) fn schemas(&self) -> impl Iterator<Item = &Schema> {
        self.schemas.iter().map(|schema| &**schema)
    }

    /// Returns the seats of each limited level, sorted by name.
    pub(super) fn limits(&self) -> Vec<(String, u32)> {
        self.levels.iter().map(|known| (known.level.name.clone(), known.seats)).collect()
    }

    fn level(&self, name: &str) -> Option<&ConfiguredLevel> {
        self.levels.iter().find(|known| known.level.name == name)
    }

    fn counts(&self, schema: &str, level: &str) -> Option<Arc<Counts>> {
        let mut counts = self.schemas.iter().map(|schema| &schema.counts);
        counts.find(|counts| counts.is_for(schema, level)).map(Arc::clone)
    }
}

/// Returns a schema with all requests of a group.
fn everything_of(group: &str) -> Value {
    json!({"spec": {"rules": [{
        "subjects": [{"kind": "Group", "group": {"name": group}}],
        "resourceRules": [{
            "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"], "clusterScope": true,
        }],
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    }]}})
}
