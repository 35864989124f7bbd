//! Reads that see the process's own writes.
//!
//! A cache lags behind the server. A reconciler that creates a pod, and runs again before the watch has seen
//! the pod, would create a second pod: the classic bug of controllers. Two means prevent the bug:
//!
//! - **Overlay.** A layer of the client remembers the response to every write of a watched kind. Reads lay
//!   these objects over the cache until the watch of the object's namespace has caught up. Reads never wait.
//! - **Write barrier.** Before a key is reconciled again, the controller waits until the watches have seen
//!   every write of the key's last reconcile. The wait is bounded; a timeout is counted, and the reconcile
//!   continues.
//!
//! The record belongs to the client: writes through `Api<K>` count as well as writes through the context.

mod admission;
mod answer;
mod overlay;
mod postings;
mod seen;
mod session;
mod written;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Weak};

use hashbrown::HashMap;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube_client::client::Body;
use parking_lot::RwLock;
use serde::Deserialize;
use windlass_cache::{ObjectKey, RawObject};

pub(crate) use self::admission::Admission;
use self::written::Reply;
pub(crate) use self::{
    overlay::UnseenWrites,
    seen::CacheView,
    session::{
        Session, WriteInFlight, WriteRef, after_status_updates, current_reconcile, note, note_any,
        note_status_update,
    },
    written::Written,
};
use crate::resource_path::{GroupResource, ResourcePath, query_flag};

/// Distinguishes the writes of a client from the writes of another client, which may talk to another cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogId(usize);

/// The writes of a client, handed to every cache of the written kind.
#[derive(Clone, Default)]
pub(crate) struct WriteLog {
    kinds: Arc<RwLock<Followers>>,
}

type Followers = HashMap<GroupResource, Vec<Weak<UnseenWrites>>, foldhash::fast::FixedState>;

/// The last write to an object.
#[derive(Clone)]
pub(crate) struct Write {
    pub(crate) uid: Arc<str>,
    /// The written resource version; for a deletion the last known resource version, which is older than the
    /// deletion.
    pub(crate) revision: u64,
    pub(crate) state: State,
    /// The high-water mark of the cache when the write was noted.
    pub(crate) noted_at: u64,
    /// True if the watch of the cache will show the write.
    pub(crate) is_shown: bool,
}

#[derive(Clone)]
pub(crate) enum State {
    Alive(RawObject),
    Gone,
}

impl State {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }
}

impl WriteLog {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn id(&self) -> LogId {
        LogId(Arc::as_ptr(&self.kinds).addr())
    }

    /// Records the writes of a kind for a cache until the returned record is dropped.
    pub(crate) fn follow(&self, resource: GroupResource, cache: impl CacheView) -> Arc<UnseenWrites> {
        let unseen = Arc::new(UnseenWrites::new(Box::new(cache)));
        let mut kinds = self.kinds.write();
        let followers = kinds.entry(resource).or_default();
        followers.retain(|follower| follower.strong_count() > 0);
        followers.push(Arc::downgrade(&unseen));
        unseen
    }

    /// Lets the next reconcile wait until the caches show an object that was read from the server.
    pub(crate) fn expect(&self, resource: GroupResource, object: &RawObject) {
        let followers = self.kinds.read();
        let Some(followers) = followers.get(&resource) else { return };
        let (key, uid, revision) = (object.key(), object.uid().into(), object.revision());
        let write = Write { uid, revision, state: State::Alive(object.clone()), noted_at: 0, is_shown: true };
        let shown_by = followers
            .iter()
            .filter(|follower| follower.upgrade().is_some_and(|follower| follower.will_show(&key, &write)));
        note(WriteRef {
            log: self.id(),
            resource: Arc::new(resource),
            uid: write.uid.clone(),
            revision,
            gone: false,
            shown_by: shown_by.cloned().collect(),
            key,
        });
    }

    /// Inspects a write before it is sent. Returns `None` if its answer need not be recorded.
    pub(crate) fn begin(&self, request: &Request<Body>) -> Option<Written> {
        let path = ResourcePath::parse(request.uri().path())?;
        let reply = Reply::of(request, &path)?;
        let resource = path.group_resource();
        let followers: Vec<_> = self.kinds.read().get(&resource)?.iter().filter_map(Weak::upgrade).collect();
        if followers.is_empty() {
            return None;
        }
        let named = path.name.map(|name| ObjectKey::new(path.namespace, name));
        let before = named.as_ref().filter(|_| matches!(reply, Reply::OtherKind));
        let before = before.map(|key| followers.iter().map(|follower| follower.cached(key)).collect());
        let before = before.unwrap_or_default();
        Some(Written { log: self.id(), followers, resource: Arc::new(resource), named, before, reply })
    }
}

/// Whether a request changes objects: it writes, and is no dry run. A dry run is asked for in the query or, for a deletion, in the
/// `DeleteOptions` of the body.
pub(crate) fn is_write(request: &Request<Body>) -> impl Future<Output = bool> + Send + use<> {
    let writes = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    let query = request.uri().query();
    let dry_run = query.is_some_and(|query| query.split('&').any(|pair| pair.starts_with("dryRun=")))
        || query_flag(query, "dryRun");
    // A body that is a stream has no copy; kube's client sends none with a deletion.
    let options = if request.method() == Method::DELETE { request.body().try_clone() } else { None };
    async move { writes && !dry_run && !has_dry_run_options(options).await }
}

#[derive(Deserialize)]
struct DeleteOptions {
    #[serde(default, rename = "dryRun")]
    dry_run: Vec<serde::de::IgnoredAny>,
}

async fn has_dry_run_options(body: Option<Body>) -> bool {
    let Some(body) = body else { return false };
    let Ok(options) = body.collect().await else { return false };
    serde_json::from_slice::<DeleteOptions>(&options.to_bytes())
        .is_ok_and(|options| !options.dry_run.is_empty())
}
