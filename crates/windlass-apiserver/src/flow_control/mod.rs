//! API Priority and Fairness: the requests that run, wait, or are refused.
//!
//! A flow schema classifies each request, and names a priority level. A level has a number of seats: a request runs
//! while the request has a seat, and waits in a queue of the level for a seat. Levels neither lend nor borrow seats.

mod config;
mod level;
mod queue;
mod rule;
mod schema;
mod subject;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderName};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::time::Instant;

pub(crate) use self::config::Changes;
use self::config::Config;
pub(crate) use self::level::{Refused, Seat};
pub(crate) use self::schema::Counts;
use self::schema::{Distinguisher, Schema};
use crate::auth::{Attributes, Identity};
use crate::store::Store;

/// The response header with the uid of the flow schema.
const SCHEMA_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
/// The response header with the uid of the priority level.
const LEVEL_UID: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// How often the server's own objects are restored, in seconds; the real server's figure.
const RESTORATION: i64 = 60;

/// The flow schemas and priority levels of a server, with the requests that run and wait.
pub(crate) struct FlowControl {
    /// The seats of all levels together.
    seats: u32,
    config: ArcSwap<Config>,
    /// Held while a new configuration is made.
    making: Mutex<()>,
    /// The time of the next look at the server's own objects, in seconds since 1970.
    restoration: AtomicI64,
    /// The writes of the flow schemas and priority levels that were looked at.
    restored: Mutex<Option<Changes>>,
    hasher: RandomState,
}

impl FlowControl {
    /// Shares `seats` among the priority levels.
    pub(crate) fn new(seats: u32) -> Self {
        Self {
            seats,
            config: ArcSwap::from_pointee(Config::mandatory(seats)),
            making: Mutex::default(),
            restoration: AtomicI64::new(0),
            restored: Mutex::default(),
            hasher: RandomState::new(),
        }
    }

    /// Classifies a request.
    pub(crate) fn classify(&self, store: &Store, identity: &Identity, request: &Attributes<'_>) -> Flow {
        self.follow(store);
        let schema = self.config.load().schema_of(identity, request);
        let flow = match schema.distinguisher {
            Distinguisher::None => 0,
            Distinguisher::User => self.hasher.hash_one((&schema.name, identity.name())),
            Distinguisher::Namespace => self.hasher.hash_one((&schema.name, request.namespace)),
        };
        Flow { schema, flow }
    }

    /// Makes a new configuration after a write of a flow schema or a priority level.
    fn follow(&self, store: &Store) {
        let view = store.view();
        if self.config.load().is_current(&view) {
            return;
        }
        let _making = self.making.lock();
        let view = store.view();
        let before = self.config.load_full();
        if !before.is_current(&view) {
            self.config.store(Arc::new(Config::of(&view, self.seats, &before)));
        }
    }

    /// Returns whether a minute has passed since the last look at the server's own objects, and an object was written since.
    pub(crate) fn is_restoration_due(&self, store: &Store, now: Timestamp) -> bool {
        let (now, due) = (now.as_second(), self.restoration.load(Ordering::Relaxed));
        if now < due {
            return false;
        }
        let next = now + RESTORATION;
        let is_first = self.restoration.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed);
        is_first.is_ok() && *self.restored.lock() != Some(Changes::of(&store.view()))
    }

    /// Records that the server's own objects were restored after the writes `seen`.
    pub(crate) fn restored(&self, seen: Changes) {
        *self.restored.lock() = Some(seen);
    }

    /// Returns the requests of each flow schema, sorted by level and schema.
    pub(crate) fn counts(&self, store: &Store) -> Vec<Arc<Counts>> {
        self.follow(store);
        let mut counts: Vec<_> =
            self.config.load().schemas().map(|schema| Arc::clone(&schema.counts)).collect();
        counts.sort_by(|a, b| (&a.level, &a.schema).cmp(&(&b.level, &b.schema)));
        counts
    }

    /// Returns the seats of each priority level, sorted by name.
    pub(crate) fn limits(&self, store: &Store) -> Vec<(String, u32)> {
        self.follow(store);
        self.config.load().limits()
    }
}

/// A classified request.
pub(crate) struct Flow {
    schema: Arc<Schema>,
    /// The hash of the flow: requests of a flow wait in order, and flows take turns.
    flow: u64,
}

impl Flow {
    /// Waits for a seat, until `deadline` at the latest.
    ///
    /// # Errors
    /// The queue is full or missing, or no seat was free in time.
    pub(crate) async fn enter(&self, deadline: Instant) -> Result<Seat, Refused> {
        let Schema { level, counts, .. } = &*self.schema;
        if let Some(seat) = level.try_enter(counts) {
            return Ok(seat);
        }
        // Boxed, because few requests wait.
        Box::pin(level.enter(counts, self.flow, deadline)).await
    }

    /// Adds the response headers with the classification.
    pub(crate) fn label(&self, headers: &mut HeaderMap) {
        headers.insert(SCHEMA_UID, self.schema.uid.clone());
        headers.insert(LEVEL_UID, self.schema.level_uid.clone());
    }
}
