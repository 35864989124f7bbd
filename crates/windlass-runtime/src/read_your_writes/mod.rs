//! Reads that see the process's own writes.
//!
//! A cache lags behind the server. A reconciler that creates a pod and runs again before the watch has seen it would create a
//! second one: the classic bug of controllers. Two means prevent it:
//!
//! - **Overlay.** A layer of the client remembers the answer to every write of a watched kind. Reads lay those over the cache until
//!   the watch of the object's namespace has caught up. They never wait.
//! - **Write barrier.** Before a key is reconciled again, its controller waits until its watches have seen every write of the last
//!   reconcile of that key. The wait is bounded; a timeout is counted, and the reconcile goes on.
//!
//! The record belongs to the client, so writes through `Api<K>` count as well as those through the context.

mod answer;
mod overlay;
mod seen;
mod session;

#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use hashbrown::HashMap;
use http::{Method, Request};
use http_body_util::BodyExt;
use kube_client::client::Body;
use parking_lot::{Mutex, RwLock};
use serde::Deserialize;
use windlass_cache::{ObjectKey, RawObject};

use self::answer::Answer;
pub(crate) use self::{
    seen::CacheView,
    session::{Session, WriteInFlight, WriteRef, note, note_any},
};
use crate::client::path::{GroupResource, ResourcePath, query_flag};

/// Tells the writes of one client from those of another, which may talk to another cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LogId(usize);

/// The writes of one client, handed to every cache of the kind that was written.
#[derive(Clone, Default)]
pub(crate) struct WriteLog {
    kinds: Arc<RwLock<Followers>>,
}

type Followers = HashMap<GroupResource, Vec<Weak<UnseenWrites>>, foldhash::fast::FixedState>;

/// The writes that one cache has not seen yet.
///
/// Each cache has its own record: watches with different selectors progress independently.
pub(crate) struct UnseenWrites {
    cache: Box<dyn CacheView>,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    writes: BTreeMap<ObjectKey, Write>,
    /// At this size, writes that the cache has seen are swept out: they need not be read ever again.
    sweep_at: usize,
}

/// The last write to one object.
#[derive(Clone)]
pub(crate) struct Write {
    pub(crate) uid: Arc<str>,
    /// The written resource version; for a deletion the last known one, which is older than the deletion.
    pub(crate) revision: u64,
    pub(crate) state: State,
    /// The high-water mark of the cache when the write was noted.
    pub(crate) noted_at: u64,
}

#[derive(Clone)]
pub(crate) enum State {
    Alive(RawObject),
    Gone,
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
        let unseen = Arc::new(UnseenWrites { cache: Box::new(cache), pending: Mutex::default() });
        let mut kinds = self.kinds.write();
        let followers = kinds.entry(resource).or_default();
        followers.retain(|follower| follower.strong_count() > 0);
        followers.push(Arc::downgrade(&unseen));
        unseen
    }

    /// Inspects a write before it is sent. Returns `None` if its answer need not be recorded.
    pub(crate) fn begin(&self, request: &Request<Body>) -> Option<Written> {
        let path = ResourcePath::parse(request.uri().path())?;
        // Other subresources answer with something other than the object.
        if !matches!(path.subresource, None | Some("status" | "finalize" | "ephemeralcontainers" | "resize"))
        {
            return None;
        }
        let delete = request.method() == Method::DELETE;
        if delete && path.name.is_none() {
            return None;
        }
        let resource = path.group_resource();
        let followers: Vec<_> = self.kinds.read().get(&resource)?.iter().filter_map(Weak::upgrade).collect();
        let named = path.name.map(|name| ObjectKey::new(path.namespace, name));
        (!followers.is_empty()).then_some(Written { log: self.id(), followers, resource, named, delete })
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

/// A write under way.
pub(crate) struct Written {
    log: LogId,
    followers: Vec<Arc<UnseenWrites>>,
    resource: GroupResource,
    /// The key in the path; a create has none.
    named: Option<ObjectKey>,
    delete: bool,
}

impl Written {
    /// Records the server's answer. An answer that does not parse is not recorded: reads fall back to the cache.
    pub(crate) fn finish(self, body: &[u8]) {
        let Some(answer) = Answer::parse(body) else { return };
        let (api_version, kind) = (answer.api_version.clone(), answer.kind.clone());
        let Some((key, write)) = self.understand(answer, body) else { return };
        for follower in &self.followers {
            // An answer in another version, or of the metadata alone, is not what readers of the cache expect.
            if write.state.is_gone() || follower.cache.has_shape(&api_version, &kind) {
                follower.note(&key, write.clone());
            }
        }
        note(WriteRef {
            log: self.log,
            resource: self.resource,
            key,
            uid: write.uid,
            revision: write.revision,
            gone: matches!(write.state, State::Gone),
        });
    }

    fn understand(&self, answer: Answer, body: &[u8]) -> Option<(ObjectKey, Write)> {
        if let Some(uid) = answer.deleted_uid() {
            let key = self.named.clone().filter(|_| self.delete)?;
            return Some((key, Write { uid: uid.into(), revision: 0, state: State::Gone, noted_at: 0 }));
        }
        let gone = answer.is_gone(self.delete);
        let meta = answer.metadata;
        let key = ObjectKey::new(meta.namespace.as_deref(), meta.name.as_deref()?);
        let uid: Arc<str> = meta.uid.as_deref()?.into();
        // Only numeric resource versions can be compared.
        let revision: u64 = meta.resource_version.as_deref()?.parse().ok()?;
        let state = if gone { State::Gone } else { State::Alive(RawObject::from_json(body).ok()?) };
        Some((key, Write { uid, revision, state, noted_at: 0 }))
    }
}
